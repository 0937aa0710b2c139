package io.hawser.broker.access;

import java.util.function.BooleanSupplier;

/** Whether someone is who they say. */
public sealed interface Answer {
    /**
     * They are.
     *
     * @param holds whether it still holds, for answers that go on for hours; counts as use of a login.
     */
    record Known(Identity identity, BooleanSupplier holds) implements Answer { }

    /**
     * They are not, or may not try.
     *
     * @param status of HTTP: 401, 403 or 429.
     * @param detail why, for whoever asks.
     * @param waitSeconds before the next attempt; 0 when none is asked for.
     * @param name that was claimed, for the audit log; empty when there was none.
     */
    record Refused(int status, String detail, long waitSeconds, String name) implements Answer { }
}
