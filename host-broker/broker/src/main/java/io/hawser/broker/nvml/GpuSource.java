package io.hawser.broker.nvml;

import java.util.Map;

/** Where readings come from. Used, and closed, by one thread. */
interface GpuSource extends AutoCloseable {
    /** A reading of each GPU that it knows, by UUID. May take long, and may never return when a driver hangs. */
    Map<String, GpuReading> read();

    @Override
    void close();
}
