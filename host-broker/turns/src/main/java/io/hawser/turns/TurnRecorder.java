package io.hawser.turns;

import java.util.List;

/**
 * Receives what the scheduler learns and decides, in order. Events between two looks belong to the first. A replay of
 * all events makes the same decisions. Called on the scheduler's thread, which it must not delay. Times are nanoseconds
 * and never go back. Seats have numbers from 1 up, never used again.
 */
public interface TurnRecorder {
    /** A worker joins. {@code gpus} are names of its session's GPUs. */
    void joined(long nowNs, int seat, String vgpu, int weight, List<String> gpus);

    /** A worker leaves. */
    void left(long nowNs, int seat);

    /** A vGPU gets another weight. */
    void weighed(long nowNs, String vgpu, int weight);

    /** The scheduler begins to read the workers of the queue that the seat is in. */
    void looked(long nowNs, int seat);

    /** The scheduler has read a state that differs from the last one; a seat begins with {@code IDLE}. */
    void read(int seat, int state);

    /** The scheduler has sent a permit. */
    void permitted(int seat, int permit);

    /** The driver now divides time between vGPUs of equal weight, or no longer; at first it does not. */
    void leftEqual(boolean isLeft);

    /** The scheduler has failed: the present workers take no more turns. */
    void abandoned(long nowNs);
}
