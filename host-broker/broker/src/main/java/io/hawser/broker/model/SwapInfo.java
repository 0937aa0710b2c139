package io.hawser.broker.model;

/**
 * Where the memory of a swappable vGPU is; see openapi.yml.
 *
 * @param resident whether all its memory is on its GPU.
 * @param residentBytes its memory on the GPU.
 * @param swappedBytes its memory in the memory of the host.
 * @param swaps how many times its memory has left the GPU.
 * @param waitedMs milliseconds in which its sessions waited for their memory.
 * @param stays why its memory cannot leave the GPU now; empty if it can.
 * @param deepSessions its sessions that have left the GPU wholly, with their contexts.
 * @param deepSwaps how many times a session has left the GPU wholly.
 * @param deepStays why a session cannot leave the GPU wholly; empty if all can.
 */
public record SwapInfo(boolean resident, long residentBytes, long swappedBytes, long swaps, long waitedMs,
    String stays, int deepSessions, long deepSwaps, String deepStays) {}
