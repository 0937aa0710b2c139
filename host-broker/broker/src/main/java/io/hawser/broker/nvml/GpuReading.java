package io.hawser.broker.nvml;

import java.util.Map;

/**
 * What one GPU told of itself at one moment. What is null is not known: the driver has no such function, or the GPU no
 * such sensor.
 *
 * @param uuid as workers tell it.
 * @param healthDetail why it is not {@link Health#OK}; empty when it is.
 * @param memoryUsedBytes of the whole device, by whomever.
 * @param utilizationPercent 0 to 100: how much of the last moments some kernel ran; of the software GPU how much of the
 *     machine's processors its workers had.
 * @param powerWatts of the whole board.
 * @param processBytes device memory of each process that computes there, by process id; empty where the driver does not
 *     tell.
 */
public record GpuReading(String uuid, Health health, String healthDetail, Long memoryUsedBytes, Long memoryTotalBytes,
    Integer utilizationPercent, Integer temperatureCelsius, Double powerWatts, Map<Long, Long> processBytes) {

    /** Whether it can be used. */
    public enum Health {
        /** As far as it tells. */
        OK,
        /** It is there, and has reported an error after which it cannot be relied on, or does not answer. */
        FAILING,
        /** It is not there any more: it fell off the bus, or must be reset. */
        LOST
    }

    /** One of which nothing is known but this. */
    static GpuReading unknown(String uuid, Health health, String detail) {
        return new GpuReading(uuid, health, detail, null, null, null, null, null, Map.of());
    }

    /** The same figures with another health. */
    GpuReading with(Health other, String detail) {
        return new GpuReading(uuid, other, detail, memoryUsedBytes, memoryTotalBytes, utilizationPercent,
            temperatureCelsius, powerWatts, processBytes);
    }
}
