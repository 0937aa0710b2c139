package io.hawser.ctl.command;

import io.hawser.ctl.ApiClient;
import picocli.CommandLine.Option;

/** Whose a vGPU must still be: the broker looks and changes in one act, so nobody else's change comes between. */
final class ExpectedOwner {
    @Option(names = "--expected-owner", paramLabel = "OWNER", converter = Owner.Converter.class,
        description = "Only while it is this owner's (as listed, or none); else nothing is done, and it ends with 6.")
    private Owner owner;

    /** As the interface knows it; null when it may be anybody's. */
    String id() {
        return owner == null ? null : owner.id();
    }

    /** The same behind the address of a vGPU; with its separator. */
    String query() {
        return owner == null ? "" : "&expectedOwner=" + ApiClient.segment(owner.id());
    }
}
