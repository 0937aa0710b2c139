package io.hawser.broker.nvml;

import io.hawser.broker.nvml.GpuReading.Health;

/**
 * The meaning of a driver's error for the health of a GPU. Most errors are a program's own fault and leave the GPU
 * healthy (13 and 31: wrong computation or address; 43 and 45: it was ended). A guest therefore cannot make a GPU
 * appear unhealthy.
 */
final class XidKind {
    private XidKind() {
    }

    /** The health of a GPU after this error. NVIDIA's list of XID errors; r580. */
    static Health health(long xid) {
        return switch ((int) Math.min(xid, Integer.MAX_VALUE)) {
            case 79 -> Health.LOST; // fell off the bus
            case 48, 95, 140 -> Health.FAILING; // memory errors that could not be corrected or contained
            case 62, 119, 120, 143 -> Health.FAILING; // the GPU's own processors have stopped or do not answer
            case 64 -> Health.FAILING; // bad memory could not be remapped
            case 74 -> Health.FAILING; // NVLink
            default -> Health.OK;
        };
    }
}
