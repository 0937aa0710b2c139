package io.hawser.broker.nvml;

import java.util.Map;

/** A source of readings. One thread uses and closes it. */
interface GpuSource extends AutoCloseable {
    /** A reading of each known GPU, by UUID. May take long, and never returns when a driver hangs. */
    Map<String, GpuReading> read();

    @Override
    void close();
}
