package io.hawser.ctl;

import java.net.URI;
import java.nio.file.Path;
import java.util.Map;

/**
 * A broker and who asks it.
 *
 * @param url {@code http://host:port} or {@code https://host:port}, without a path.
 * @param headers that tell who asks; none of them is ever printed.
 * @param identity where they are from, for messages; empty when nobody is named.
 * @param caFile certificates that are trusted; null for those of the Java.
 */
public record Endpoint(URI url, Map<String, String> headers, String identity, Path caFile) { }
