package io.hawser.gpu.software.device;

import io.hawser.gpu.software.exec.GlobalMemory;

/**
 * Memory for managed variables: addresses apart from the arena, because the guest's process must have the same ones
 * free. Variables of several modules share pages, as with NVIDIA's driver. Thread-safe.
 */
final class ManagedHeap {
    /** Wanted address. Nothing else lies there in a common process of Linux. */
    private static final long FIRST = 0x1800_0000_0000L;
    private static final long PAGE_BYTES = 4096;
    private static final long FIRST_SKIP_BYTES = 64 << 20;
    private static final int MAX_SKIPS = 8; // a guest asks for them

    private final DeviceMemory memory; // charged
    private DeviceMemory variables; // null until the first one
    private int skips;

    ManagedHeap(DeviceMemory memory) {
        this.memory = memory;
    }

    /** Allocates a variable of at least one byte; returns 0 when the device has no memory or no addresses left. */
    synchronized long allocate(long bytes) {
        if (variables == null) {
            long window = Math.max(memory.totalBytes(), FIRST_SKIP_BYTES) * 2 & -PAGE_BYTES;
            long address = memory.arena().canMapHost() ? memory.arena().reserveAddresses(window, PAGE_BYTES, FIRST) : 0;
            variables = address == 0 ? memory : new DeviceMemory(memory.arena(), address, window);
        }
        if (variables == memory) {
            return memory.allocate(bytes); // no host can use managed memory of this device
        }
        long whole = bytes + GlobalMemory.GRANULE_BYTES - 1 & -GlobalMemory.GRANULE_BYTES;
        if (whole < bytes || !memory.charge(whole)) {
            return 0;
        }
        long address = variables.allocate(bytes);
        if (address == 0) {
            memory.charge(-whole);
        }
        return address;
    }

    /** Frees a variable. */
    synchronized void free(long address) {
        long bytes = variables == memory ? 0 : variables.sizeOf(address);
        variables.free(address);
        memory.charge(-bytes);
    }

    /** Places later variables elsewhere; the distance grows with each of the {@code times}. */
    synchronized void move(int times) {
        for (; variables != null && variables != memory && skips < Math.min(times, MAX_SKIPS); skips++) {
            variables.skip(Math.min(FIRST_SKIP_BYTES << skips, variables.totalBytes() >> MAX_SKIPS - skips));
        }
    }
}
