package io.hawser.broker.model;

/**
 * The end of a request to move a vGPU to another GPU.
 *
 * @param from UUID of the GPU on which it was; empty for a refused request.
 * @param to UUID of the other GPU; the GPU as the caller named it for a refused request.
 * @param sessions that have moved with it; 0 unless it has moved.
 * @param ms time since the request.
 * @param problem why it has not moved; empty when it has.
 */
public record MoveOutcome(String vgpu, Result result, String from, String to, int sessions, long ms, String problem) {
    /** The kinds of ends. */
    public enum Result {
        /** The vGPU is on the other GPU. */
        MOVED,
        /** A rule has forbidden the move before it began. */
        REFUSED,
        /** The move has begun and failed; the sessions have stayed. */
        FAILED
    }
}
