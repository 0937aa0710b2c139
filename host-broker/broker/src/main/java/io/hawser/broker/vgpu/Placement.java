package io.hawser.broker.vgpu;

import io.hawser.broker.model.Device;
import io.hawser.broker.model.GpuChoice;
import io.hawser.broker.model.Labelled;
import io.hawser.broker.model.Sharing;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.ToLongFunction;
import java.util.stream.Collectors;

/**
 * Chooses the GPUs of a vGPU. On each GPU it keeps two limits:
 *
 * <ul>
 *   <li>The vGPUs that are not swappable, the workers' contexts, and the largest swappable vGPU fit into the memory
 *       together. So each swappable vGPU fits alone beside the others.
 *   <li>All vGPUs and contexts fit into the memory times the overcommit. Only swappable vGPUs can exceed the memory.
 * </ul>
 *
 * @param policy for vGPUs that accept any GPU.
 * @param overcommit how many times a GPU's memory may be reserved, 1 to 16.
 */
public record Placement(Policy policy, double overcommit) {
    private static final double MOST_OVERCOMMIT = 16;
    private static final int MAX_OBJECTIONS = 8; // bounds a message: a pool may have thousands of GPUs

    /** The preferred GPU for a vGPU that accepts any; among equals, the first in the workers' order. */
    public enum Policy implements Labelled {
        /** The least sum of compute shares, then the least reserved memory. */
        LEAST_LOADED(GpuLoad::shares, Comparator.comparingLong(GpuLoad::reservedBytes)),
        /** The most reserved memory, then the greatest sum of shares. */
        PACKED(gpu -> -gpu.reservedBytes(), Comparator.comparingInt(GpuLoad::shares).reversed()),
        /** The fewest vGPUs, then the least sum of shares, then the least reserved memory. */
        SPREAD(GpuLoad::vgpus, Comparator.comparingInt(GpuLoad::shares).thenComparingLong(GpuLoad::reservedBytes));

        private final ToLongFunction<GpuLoad> rank;
        private final Comparator<GpuLoad> order;

        Policy(ToLongFunction<GpuLoad> rank, Comparator<GpuLoad> amongEquals) {
            this.rank = rank;
            order = Comparator.comparingLong(rank).thenComparing(amongEquals);
        }

        /** The first criterion; less is better. */
        long rank(GpuLoad gpu) {
            return rank.applyAsLong(gpu);
        }

        /** The best first. */
        Comparator<GpuLoad> order() {
            return order;
        }
    }

    /** No GPU fits; the message names the rule and the numbers. */
    static final class NoPlaceException extends Exception {
        private static final long serialVersionUID = 1L;

        NoPlaceException(String message) {
            super(message);
        }
    }

    /**
     * Takes the placement from the settings.
     *
     * @throws IllegalArgumentException when a setting is invalid; the message names it.
     */
    public static Placement of(String policy, double overcommit) {
        if (!(overcommit >= 1 && overcommit <= MOST_OVERCOMMIT)) {
            throw new IllegalArgumentException("hawser.overcommit must be 1.0.." + MOST_OVERCOMMIT + ": overcommit="
                + overcommit);
        }
        try {
            return new Placement(Labelled.of(Policy.class, policy, "hawser.placement"), overcommit);
        } catch (VgpuException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        }
    }

    /**
     * Chooses the GPUs of a vGPU.
     *
     * @param gpus present reservations on each GPU, in the workers' order, without this vGPU.
     * @return UUIDs, in the vGPU's order.
     * @throws NoPlaceException when a rule forbids every choice; the message names it.
     */
    List<String> place(Vgpu vgpu, List<GpuLoad> gpus) throws NoPlaceException {
        if (vgpu.gpus().kind() == GpuChoice.Kind.ANY) {
            return List.of(any(vgpu, gpus).device().uuid());
        }
        List<String> uuids = named(vgpu, gpus);
        requireFit(vgpu, uuids, gpus);
        return uuids;
    }

    /**
     * As {@link #place}, with the exception of requests.
     *
     * @throws VgpuException when a rule forbids every choice; the message names it.
     */
    public List<String> placeOn(Vgpu vgpu, List<GpuLoad> gpus) throws VgpuException {
        try {
            return place(vgpu, gpus);
        } catch (NoPlaceException e) {
            throw VgpuException.conflict(e.getMessage());
        }
    }

    /**
     * As {@link #requireFit}, with the exception of requests.
     *
     * @throws VgpuException when the GPUs have no room for the vGPU.
     */
    public void requireRoom(Vgpu vgpu, List<String> home, List<GpuLoad> gpus) throws VgpuException {
        try {
            requireFit(vgpu, home, gpus);
        } catch (NoPlaceException e) {
            throw VgpuException.conflict(e.getMessage());
        }
    }

    private GpuLoad any(Vgpu vgpu, List<GpuLoad> gpus) throws NoPlaceException {
        Search search = search(vgpu);
        gpus.forEach(search::offer);
        return search.result();
    }

    /** Begins the search for a GPU for a vGPU that accepts any. */
    public Search search(Vgpu vgpu) {
        return new Search(vgpu, Comparator.comparing(GpuLoad::failing).thenComparing(policy.order));
    }

    /** A search among GPUs that come one by one. For one thread. */
    public final class Search {
        private final Vgpu vgpu;
        private final Comparator<GpuLoad> order;
        private final List<GpuLoad> refused = new ArrayList<>(); // the first ones, for the message
        private int offered;
        private GpuLoad best; // null until one fits

        private Search(Vgpu vgpu, Comparator<GpuLoad> order) {
            this.vgpu = vgpu;
            this.order = order;
        }

        /**
         * Offers a GPU with its present reservations, without this vGPU.
         *
         * @return whether it fits and is better than all earlier ones.
         */
        public boolean offer(GpuLoad gpu) {
            offered++;
            if (best != null && order.compare(gpu, best) >= 0) {
                return false; // the first of equals counts
            }
            if (!fits(vgpu, gpu)) {
                if (refused.size() < MAX_OBJECTIONS) {
                    refused.add(gpu);
                }
                return false;
            }
            best = gpu;
            return true;
        }

        /**
         * The best GPU.
         *
         * @return one of the offered objects.
         * @throws VgpuException when a rule forbids every choice; the message names it.
         */
        public GpuLoad best() throws VgpuException {
            try {
                return result();
            } catch (NoPlaceException e) {
                throw VgpuException.conflict(e.getMessage());
            }
        }

        private GpuLoad result() throws NoPlaceException {
            if (best != null) {
                return best;
            }
            String objections = refused.stream().map(gpu -> objection(vgpu, gpu)).collect(Collectors.joining("; "));
            int more = offered - refused.size();
            throw new NoPlaceException("no GPU has a place for the vGPU: vgpu=" + vgpu.name() + ": "
                + (offered == 0 ? "the broker has no GPU" : objections)
                + (more > 0 ? "; further GPUs without a place: gpus=" + more : ""));
        }
    }

    private static List<String> named(Vgpu vgpu, List<GpuLoad> gpus) throws NoPlaceException {
        List<Device> devices = gpus.stream().map(GpuLoad::device).toList();
        if (devices.isEmpty()) {
            throw new NoPlaceException("a vGPU's GPU must be there: vgpu=" + vgpu.name() + ": the broker has no GPU");
        }
        try {
            return vgpu.gpus().named(devices).stream().map(Device::uuid).toList();
        } catch (GpuChoice.NoGpuException e) {
            throw new NoPlaceException(e.getMessage());
        }
    }

    /**
     * Checks that a vGPU fits on these GPUs.
     *
     * @throws NoPlaceException when it does not.
     */
    void requireFit(Vgpu vgpu, List<String> uuids, List<GpuLoad> gpus) throws NoPlaceException {
        for (String uuid : uuids) {
            GpuLoad gpu = gpus.stream().filter(g -> g.device().uuid().equals(uuid)).findFirst()
                .orElseThrow(() -> new NoPlaceException("a vGPU's GPU must be there: vgpu=" + vgpu.name() + " gpu="
                    + uuid));
            String objection = objection(vgpu, gpu);
            if (objection != null) {
                throw new NoPlaceException(objection);
            }
        }
    }

    /** Whether a vGPU fits on a GPU. */
    private boolean fits(Vgpu vgpu, GpuLoad gpu) {
        return !gpu.drained() && gpu.exclusive().isEmpty() && !(vgpu.mode() == Sharing.EXCLUSIVE && gpu.vgpus() > 0)
            && !(vgpu.reserves() && gpu.device().totalBytes() > 0 && vgpu.memoryBytes() > freeBytes(vgpu, gpu));
    }

    /** Why a GPU does not fit; null when it does. */
    private String objection(Vgpu vgpu, GpuLoad gpu) {
        if (fits(vgpu, gpu)) {
            return null;
        }
        String uuid = gpu.device().uuid();
        if (gpu.drained()) {
            return "a GPU that is drained gets no vGPU: gpu=" + uuid;
        }
        if (!gpu.exclusive().isEmpty()) {
            return "a vGPU has the GPU exclusively: gpu=" + uuid + " vgpu=" + gpu.exclusive();
        }
        if (vgpu.mode() == Sharing.EXCLUSIVE && gpu.vgpus() > 0) {
            return "a GPU for exclusive use must have no other vGPU: gpu=" + uuid + " vgpus=" + gpu.vgpus()
                + " vgpu=" + gpu.shared();
        }
        return String.format(Locale.ROOT, "the GPU's memory is all reserved: gpu=%s wantedBytes=%d freeBytes=%d "
            + "totalBytes=%d %s", uuid, vgpu.memoryBytes(), Math.max(0, freeBytes(vgpu, gpu)),
            gpu.device().totalBytes(), numbers(gpu));
    }

    /** Memory that a vGPU can reserve on a GPU; negative when the GPU has too many reservations. */
    private long freeBytes(Vgpu vgpu, GpuLoad gpu) {
        Reserved reserved = gpu.reserved();
        long total = gpu.device().totalBytes();
        // The reservation includes the vGPU's first context: otherwise the vGPU could not use all memory that it has
        // reserved.
        long contexts = (gpu.contexts() + 1) * gpu.contextBytes();
        long besideBytes = vgpu.swappable() ? reserved.fixedBytes() : reserved.togetherBytes();
        return Math.min(total - contexts - besideBytes, limitBytes(total) - contexts - reserved.allBytes());
    }

    private String numbers(GpuLoad gpu) {
        return String.format(Locale.ROOT, "reservedBytes=%d swappableBytes=%d largestSwappableBytes=%d contexts=%d "
            + "contextBytes=%d overcommit=%.2f", gpu.reservedBytes(), gpu.reserved().swappableBytes(),
            gpu.reserved().largestSwappableBytes(), gpu.contexts(), gpu.contextBytes(), overcommit);
    }

    /**
     * Why a GPU has no room for another worker's context; null when it has room, or when contexts use no memory there.
     */
    String contextObjection(GpuLoad gpu) {
        long total = gpu.device().totalBytes();
        if (total == 0 || gpu.contextBytes() == 0 || gpu.contextBytes() <= unreservedBytes(gpu)) {
            return null;
        }
        return String.format(Locale.ROOT, "the GPU's memory has no room for one more context: gpu=%s totalBytes=%d %s",
            gpu.device().uuid(), total, numbers(gpu));
    }

    /** Number of contexts that fit into the memory of a GPU that nothing has reserved. */
    int contextRoom(GpuLoad gpu) {
        return gpu.device().totalBytes() == 0 || gpu.contextBytes() == 0 ? Integer.MAX_VALUE
            : Math.clamp(unreservedBytes(gpu) / gpu.contextBytes(), 0, Integer.MAX_VALUE);
    }

    /** Memory of a GPU that another context may take; negative when the GPU has too many reservations. */
    private long unreservedBytes(GpuLoad gpu) {
        long total = gpu.device().totalBytes();
        return Math.min(total - gpu.togetherBytes(), limitBytes(total) - gpu.committedBytes());
    }

    /**
     * Memory that the vGPUs of best effort must leave to the others, in bytes. With an overcommit, swappable vGPUs may
     * have to leave the GPU for each other. They then keep only the room of the largest one.
     */
    long keptBytes(Reserved reserved) {
        return overcommit > 1 ? reserved.togetherBytes() : reserved.allBytes();
    }

    /** A line for the log that explains an overcommit; empty for 1. */
    public Optional<String> notice() {
        return overcommit > 1 ? Optional.of(String.format(Locale.ROOT, "hawser.overcommit counts swappable vGPUs only: "
            + "a GPU's other vGPUs, the workers' contexts and its largest swappable vGPU must fit into its memory: "
            + "overcommit=%.2f", overcommit)) : Optional.empty();
    }

    private long limitBytes(long totalBytes) {
        return (long) (totalBytes * overcommit);
    }
}
