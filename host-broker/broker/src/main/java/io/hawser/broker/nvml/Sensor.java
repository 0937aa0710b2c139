package io.hawser.broker.nvml;

import java.util.List;

/**
 * Figures of a whole GPU, in the order of the line {@code sensors} of a status (hws_status.h). Only an exclusive vGPU
 * gets them, since they show the work of neighbours.
 */
public enum Sensor {
    /** The part of the last sample period in which the memory was read or written. */
    MEMORY_UTILIZATION_PERCENT,
    /** Power of the whole board. */
    POWER_MILLIWATTS,
    /** The limit in force. */
    ENFORCED_LIMIT_MILLIWATTS,
    /** The limit that was set. */
    LIMIT_MILLIWATTS,
    /** The limit after a start. */
    DEFAULT_LIMIT_MILLIWATTS,
    /** The least limit that can be set. */
    MIN_LIMIT_MILLIWATTS,
    /** The greatest limit that can be set. */
    MAX_LIMIT_MILLIWATTS,
    /** Energy since the driver was loaded. */
    ENERGY_MILLIJOULES,
    /** Graphics clock. */
    GRAPHICS_MHZ,
    /** Clock of the multiprocessors. */
    SM_MHZ,
    /** Memory clock. */
    MEMORY_MHZ,
    /** Clock of the video engines. */
    VIDEO_MHZ,
    /** Greatest graphics clock. */
    MAX_GRAPHICS_MHZ,
    /** Greatest clock of the multiprocessors. */
    MAX_SM_MHZ,
    /** Greatest memory clock. */
    MAX_MEMORY_MHZ,
    /** Greatest clock of the video engines. */
    MAX_VIDEO_MHZ,
    /** 0 (fastest) to 15, or 32 when it is unknown. */
    PERFORMANCE_STATE,
    /** Reasons for the present clocks: NVML's bits. */
    CLOCK_REASONS,
    /** The bits that the GPU can report. */
    SUPPORTED_CLOCK_REASONS,
    /** Temperature of the memory. */
    MEMORY_CELSIUS,
    /** Power of the whole board at this moment; {@link #POWER_MILLIWATTS} is an average over a second. */
    INSTANT_POWER_MILLIWATTS,
    /** Corrected errors since the driver was loaded. */
    VOLATILE_CORRECTED_ERRORS,
    /** Uncorrected errors since the driver was loaded. */
    VOLATILE_UNCORRECTED_ERRORS,
    /** Corrected errors of the GPU's life. */
    AGGREGATE_CORRECTED_ERRORS,
    /** Uncorrected errors of the GPU's life. */
    AGGREGATE_UNCORRECTED_ERRORS;

    /** The present clocks in the order of {@code nvmlClockType_t}. */
    static final List<Sensor> CLOCKS = List.of(GRAPHICS_MHZ, SM_MHZ, MEMORY_MHZ, VIDEO_MHZ);
    /** The greatest clocks in the same order. */
    static final List<Sensor> MAX_CLOCKS = List.of(MAX_GRAPHICS_MHZ, MAX_SM_MHZ, MAX_MEMORY_MHZ, MAX_VIDEO_MHZ);
    /** Errors in the order of {@code nvmlEccCounterType_t}, then of {@code nvmlMemoryErrorType_t}. */
    static final List<Sensor> ERRORS = List.of(VOLATILE_CORRECTED_ERRORS, VOLATILE_UNCORRECTED_ERRORS,
        AGGREGATE_CORRECTED_ERRORS, AGGREGATE_UNCORRECTED_ERRORS);
}
