package io.hawser.poolsimulator.engine;

import java.util.HashMap;
import java.util.Map;

/**
 * Counts what is reserved on each GPU, independently of the broker's sums: from the answers of the placement alone. A
 * GPU must hold its vGPUs' memory, a context for each vGPU that reserves memory, and the spare worker's context.
 */
final class Count {
    private final long totalBytes;
    private final long contextBytes;
    private final Map<String, Gpu> gpus = new HashMap<>();
    private final Map<String, Place> places = new HashMap<>();
    private long violations;
    private String first = "";

    /** A GPU's reservations. */
    private static final class Gpu {
        private long bytes;
        private int reserving;
    }

    /** A vGPU's place. */
    private record Place(String gpu, long bytes) {}

    /** Counts on equal GPUs. */
    Count(long totalBytes, long contextBytes) {
        this.totalBytes = totalBytes;
        this.contextBytes = contextBytes;
    }

    void addGpu(String uuid) {
        gpus.put(uuid, new Gpu());
    }

    /** A vGPU gets a place, and leaves its last one. */
    void place(String vgpu, String uuid, long bytes) {
        remove(vgpu);
        places.put(vgpu, new Place(uuid, bytes));
        add(uuid, bytes, bytes > 0 ? 1 : 0);
        long usedBytes = usedBytes(uuid);
        if (usedBytes > totalBytes) {
            violation("a GPU has more reserved than it has: gpu=" + uuid + " vgpu=" + vgpu + " usedBytes=" + usedBytes
                + " totalBytes=" + totalBytes);
        }
    }

    void remove(String vgpu) {
        Place last = places.remove(vgpu);
        if (last != null) {
            add(last.gpu, -last.bytes, last.bytes > 0 ? -1 : 0);
        }
    }

    private void add(String uuid, long bytes, int reserving) {
        Gpu gpu = gpus.get(uuid);
        gpu.bytes += bytes;
        gpu.reserving += reserving;
    }

    private long usedBytes(String uuid) {
        Gpu gpu = gpus.get(uuid);
        return gpu.bytes + (gpu.reserving + 1) * contextBytes;
    }

    /** Memory for further vGPUs and their contexts on a GPU. */
    long freeBytes(String uuid) {
        return totalBytes - usedBytes(uuid);
    }

    /** Compares a sum over the database's rows or a broker's own table with this count. */
    void compare(String what, Map<String, Long> bytesByGpu) {
        bytesByGpu.forEach((uuid, bytes) -> {
            if (gpus.get(uuid).bytes != bytes) {
                violation(what + " must reserve what was placed: gpu=" + uuid + " bytes=" + bytes + " placedBytes="
                    + gpus.get(uuid).bytes);
            }
        });
    }

    private void violation(String message) {
        violations++;
        first = first.isEmpty() ? message : first;
    }

    long violations() {
        return violations;
    }

    /** The first violation; empty for none. */
    String firstViolation() {
        return first;
    }
}
