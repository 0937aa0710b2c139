package io.hawser.broker.nvml;

import io.hawser.broker.nvml.GpuReading.Health;

/**
 * What an error that the driver reports means for the GPU. Most are a program's own fault (13 and 31: it computed or
 * addressed wrongly; 43 and 45: it was ended) and mean nothing for others, so that a guest cannot make a GPU look ill.
 */
final class XidKind {
    private XidKind() {
    }

    /** The health of a GPU after this error. NVIDIA's list of XID errors; r580. */
    static Health health(long xid) {
        return switch ((int) Math.min(xid, Integer.MAX_VALUE)) {
            case 79 -> Health.LOST; // fallen off the bus
            case 48, 95, 140 -> Health.FAILING; // memory errors that could not be corrected or contained
            case 62, 119, 120, 143 -> Health.FAILING; // its own processors have stopped or do not answer
            case 64 -> Health.FAILING; // broken memory could not be put aside
            case 74 -> Health.FAILING; // NVLink
            default -> Health.OK;
        };
    }
}
