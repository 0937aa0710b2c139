package io.hawser.broker.jail;

import java.lang.management.ManagementFactory;
import java.util.OptionalLong;

/**
 * How much of the machine's memory a worker may have.
 *
 * @param wanted by the settings; empty for the defaults.
 * @param machineBytes memory of the machine.
 */
record MemoryLimit(OptionalLong wanted, long machineBytes) {
    /** A worker's heap, its direct memory, code, stacks and buffers of its carrier (hawser.worker.flags). */
    private static final long SOFTWARE_BYTES = 2L << 30;

    /** With the memory of this machine, or of the group that it is to the broker. */
    static MemoryLimit of(OptionalLong wanted) {
        com.sun.management.OperatingSystemMXBean machine = (com.sun.management.OperatingSystemMXBean)
            ManagementFactory.getOperatingSystemMXBean();
        return new MemoryLimit(wanted, machine.getTotalMemorySize());
    }

    /** Before it has met its guest. */
    long waiting() {
        return wanted.orElse(machineBytes / 2);
    }

    /**
     * For one session.
     *
     * @param backend as the worker calls it.
     * @param deviceBytes memory of its vGPU's devices together, which the software GPU has among the machine's.
     * @param regionBytes of the guest's shared memory, whose pages may count for the worker; 0 over TCP.
     */
    long serving(String backend, long deviceBytes, long regionBytes) {
        return backend.equals("software") ? wanted.orElse(SOFTWARE_BYTES) + deviceBytes + regionBytes
            : waiting() + regionBytes;
    }
}
