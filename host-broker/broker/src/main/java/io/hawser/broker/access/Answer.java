package io.hawser.broker.access;

import java.util.function.BooleanSupplier;

/** The result of identifying a sender. */
public sealed interface Answer {
    /**
     * The sender is known.
     *
     * @param holds whether the identity is still valid, for answers that last hours; the check counts as use of a
     * login.
     */
    record Known(Identity identity, BooleanSupplier holds) implements Answer {}

    /**
     * The sender is unknown, or must wait before its next attempt.
     *
     * @param status of HTTP: 401, 403 or 429.
     * @param detail the reason, for the sender.
     * @param waitSeconds time to wait before the next attempt; 0 for none.
     * @param name the claimed name, for the audit log; empty when there was none.
     */
    record Refused(int status, String detail, long waitSeconds, String name) implements Answer {}
}
