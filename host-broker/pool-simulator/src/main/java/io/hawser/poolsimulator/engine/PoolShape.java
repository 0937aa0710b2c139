package io.hawser.poolsimulator.engine;

/**
 * A pool of equal brokers.
 *
 * @param brokers their number.
 * @param gpus GPUs of each.
 * @param gpuBytes memory of a GPU.
 * @param contextBytes memory of a worker's context.
 */
public record PoolShape(int brokers, int gpus, long gpuBytes, long contextBytes) {}
