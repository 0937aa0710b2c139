package io.hawser.client;

import java.net.URI;
import java.nio.file.Path;
import java.util.Map;

/**
 * The address of a broker and the caller's credentials.
 *
 * @param url {@code http://host:port} or {@code https://host:port}, without a path.
 * @param headers with the credentials; never printed.
 * @param identity the source of the credentials, for messages; empty if there are none.
 * @param caFile trusted certificates; null for the JDK's own.
 */
public record Endpoint(URI url, Map<String, String> headers, String identity, Path caFile) {}
