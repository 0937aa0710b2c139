package io.hawser.broker.nvml;

import java.util.Map;

/**
 * The figures of one GPU at one time. Null is unknown: the driver lacks the function, or the GPU lacks the sensor.
 *
 * @param uuid in the workers' form.
 * @param healthDetail why it is not {@link Health#OK}; empty when it is.
 * @param memoryUsedBytes of the whole device, by all processes.
 * @param utilizationPercent 0 to 100: the part of the last sample period in which a kernel ran; for the software GPU
 * the part of the machine's processors that its workers used.
 * @param powerWatts of the whole board.
 * @param sensors further figures; a figure that the GPU lacks is missing.
 * @param traits properties, without those that the GPU lacks.
 * @param peers the states of peer access to other GPUs, by UUID: {@link Nvml#peerStates}.
 * @param processBytes device memory of each computing process, by process id; empty where the driver has no figures.
 */
public record GpuReading(String uuid, Health health, String healthDetail, Long memoryUsedBytes, Long memoryTotalBytes,
    Integer utilizationPercent, Integer temperatureCelsius, Double powerWatts, Map<Sensor, Long> sensors,
    Map<Trait, Long> traits, Map<String, String> peers, Map<Long, Long> processBytes) {

    /** Whether the GPU can be used. */
    public enum Health {
        /** No known problem. */
        OK,
        /** Present, but has reported an error after which it is unreliable, or does not answer. */
        FAILING,
        /** Gone: it fell off the bus, or must be reset. */
        LOST
    }

    /** A reading without figures. */
    static GpuReading unknown(String uuid, Health health, String detail) {
        return new GpuReading(uuid, health, detail, null, null, null, null, null, Map.of(), Map.of(), Map.of(),
            Map.of());
    }
}
