package io.hawser.broker.nvml;

import java.util.Map;

/** A source of readings. One thread uses and closes it. */
interface GpuSource extends AutoCloseable {
    /** A reading of each known GPU, by UUID. May take long, and never returns when a driver hangs. */
    Map<String, GpuReading> read();

    /** The driver's version; empty when there is no driver, or it does not answer. After {@link #read}. */
    default String driverVersion() {
        return "";
    }

    @Override
    void close();
}
