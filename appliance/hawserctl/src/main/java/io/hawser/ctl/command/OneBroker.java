package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import picocli.CommandLine.Option;

/** The broker of a pool whose objects a list shows. Not named --broker, which is an address for {@code cdi}. */
final class OneBroker {
    @Option(names = "--of", paramLabel = "BROKER", description = "Only what this broker of the pool has.")
    private String name;

    /** Adds the query parameter to the address of a list, which may have other parameters. */
    String query(String path) {
        return name == null ? path : path + (path.contains("?") ? "&" : "?") + "broker=" + ApiClient.segment(name);
    }
}
