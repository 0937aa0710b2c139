package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import picocli.CommandLine.Option;

/**
 * The expected owner of a vGPU. The broker compares and changes in one step, so no other client's change comes between.
 */
final class ExpectedOwner {
    @Option(names = "--expected-owner", paramLabel = "OWNER", converter = Owner.Converter.class,
        description = "Only if this is the owner (as listed, or none); else does nothing and exits with 6.")
    private Owner owner;

    /** The owner's id in the REST interface; null if any owner is accepted. */
    String id() {
        return owner == null ? null : owner.id();
    }

    /** The query parameter for a vGPU's address, with its separator. */
    String query() {
        return owner == null ? "" : "&expectedOwner=" + ApiClient.segment(owner.id());
    }
}
