package io.hawser.broker.audit;

import java.time.Instant;

/**
 * An administrative act; see openapi.yml. No field contains a secret: the audit does not read the bodies of requests.
 *
 * @param seq number in the log; 0 until it is written.
 * @param name of the sender; empty when unknown.
 * @param role of the sender; empty when unknown.
 * @param peer address of the sender.
 * @param action the operation by its name in openapi.yml; method and path where there is none.
 * @param target names and ids of the objects.
 * @param outcome {@code done}, {@code refused} or {@code failed}.
 * @param detail the reason of a refusal or failure; empty when it was done.
 */
public record AuditEntry(long seq, Instant time, String name, String role, String peer, String action, String target,
    String outcome, String detail) {
    static final int MAX_NAME_CHARACTERS = 128;
    static final int MAX_TARGET_CHARACTERS = 256;
    static final int MAX_DETAIL_CHARACTERS = 512;
}
