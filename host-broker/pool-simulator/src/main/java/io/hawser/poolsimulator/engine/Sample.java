package io.hawser.poolsimulator.engine;

/**
 * The pool at a time.
 *
 * @param atMs time since the start.
 * @param vgpus number of vGPUs.
 * @param homeless vGPUs of silent brokers that are not in use and have found no new home.
 * @param kept vGPUs of silent brokers that are in use and stay there.
 * @param reservedPart part of the memory that vGPUs and contexts reserve at brokers that are not silent, 0 to 1.
 * @param fragmentedPart part of the free memory there that lies on GPUs without room for a vGPU of the given size, 0 to
 *     1.
 */
public record Sample(long atMs, int vgpus, int homeless, int kept, double reservedPart, double fragmentedPart) {}
