package io.hawser.poolsimulator.load;

/**
 * A request for a vGPU.
 *
 * @param atMs time of the request since the start, in milliseconds.
 * @param lifeMs time from there to its deletion, in milliseconds; at least 1.
 * @param memoryMib memory that it reserves, in MiB; 0 for best effort.
 * @param share its compute share, 1 to 100.
 * @param isUsed whether it has a session as long as its broker answers.
 */
public record Arrival(long atMs, long lifeMs, int memoryMib, int share, boolean isUsed) {}
