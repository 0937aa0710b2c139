package io.hawser.broker.audit;

import java.time.Instant;

/**
 * An administrative act; see openapi.yml. No field ever has a secret: bodies of requests are not looked at.
 *
 * @param seq number in the log; 0 while it is not written.
 * @param name of who asked; empty when they have not said.
 * @param role of them; empty when it is not known.
 * @param peer their address.
 * @param action the operation, by its name in openapi.yml; method and path where there is none.
 * @param target what it was about: names and ids.
 * @param outcome {@code done}, {@code refused} or {@code failed}.
 * @param detail why not; empty when it was done.
 */
public record AuditEntry(long seq, Instant time, String name, String role, String peer, String action, String target,
    String outcome, String detail) {
    static final int MAX_NAME_CHARACTERS = 128;
    static final int MAX_TARGET_CHARACTERS = 256;
    static final int MAX_DETAIL_CHARACTERS = 512;
}
