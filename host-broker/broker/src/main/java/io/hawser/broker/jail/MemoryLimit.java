package io.hawser.broker.jail;

import java.lang.management.ManagementFactory;
import java.util.OptionalLong;

/**
 * Computes the limit of a worker's memory on the machine.
 *
 * @param wanted limit of the settings; empty for the defaults.
 * @param machineBytes memory of the machine.
 */
record MemoryLimit(OptionalLong wanted, long machineBytes) {
    /** A worker's heap, direct memory, code, stacks and carrier buffers (hawser.worker.flags). */
    private static final long SOFTWARE_BYTES = 2L << 30;

    /** Uses the memory of this machine, or of the broker's control group. */
    static MemoryLimit of(OptionalLong wanted) {
        com.sun.management.OperatingSystemMXBean machine =
            (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return new MemoryLimit(wanted, machine.getTotalMemorySize());
    }

    /** The limit before the worker has received its guest. */
    long beforeSession() {
        return wanted.orElse(machineBytes / 2);
    }

    /**
     * The limit during a session.
     *
     * @param backend the backend's name from the worker.
     * @param deviceBytes memory of its vGPU's devices together; the software GPU keeps it in the machine's memory.
     * @param regionBytes size of the guest's shared memory, whose pages may count for the worker; 0 over TCP.
     */
    long duringSession(String backend, long deviceBytes, long regionBytes) {
        return backend.equals("software") ? wanted.orElse(SOFTWARE_BYTES) + deviceBytes + regionBytes
            : beforeSession() + regionBytes;
    }
}
