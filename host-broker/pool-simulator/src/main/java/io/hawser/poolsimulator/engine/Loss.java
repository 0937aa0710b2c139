package io.hawser.poolsimulator.engine;

/**
 * Brokers that lose the database for a while.
 *
 * @param part of the brokers, 0 to 1.
 * @param atMs time of their last heartbeat.
 * @param backMs time of their return.
 */
public record Loss(double part, long atMs, long backMs) {
    /** No broker is lost. */
    public static final Loss NONE = new Loss(0, Long.MAX_VALUE, Long.MAX_VALUE);
}
