package io.hawser.check;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * Programs that share a GPU at the same time.
 *
 * @param name in options and tables.
 * @param tenants one for each program.
 * @param isWeighted whether the vGPUs have compute shares in proportion to the weights; then nothing runs natively.
 */
record ShareSet(String name, List<Tenant> tenants, boolean isWeighted) {
    /** What a program does. */
    enum Load {
        /** Launches kernels as fast as it can. */
        FLOOD(32, 0, true),
        /** Waits for each kernel. */
        LOOP(1, 0, true),
        /** Launches long kernels, without a warm-up. */
        GREEDY(4, 0, true),
        /** Copies pinned memory to the device as fast as it can. */
        COPIES(4, 8 * 1024, false),
        /** Copies pinned memory to the device and launches a kernel, in turn. */
        COPIES_AND_KERNELS(16, 4 * 1024, true);

        private final int depth;
        private final int copyKib;
        private final boolean hasKernels;

        Load(int depth, int copyKib, boolean hasKernels) {
            this.depth = depth;
            this.copyKib = copyKib;
            this.hasKernels = hasKernels;
        }

        /** Pieces of work in flight. */
        int depth() {
            return depth;
        }

        /** Length of each piece's copy, in KiB; 0 for none. */
        int copyKib() {
            return copyKib;
        }

        /** Whether each piece has a kernel. */
        boolean hasKernels() {
            return hasKernels;
        }
    }

    /**
     * A program.
     *
     * @param weight its part of the work; 0 for work of another kind.
     * @param load its work.
     */
    record Tenant(int weight, Load load) {}

    private static final List<ShareSet> ALL = List.of(equal("equal2", 2, Load.FLOOD), equal("equal4", 4, Load.FLOOD),
        equal("equal8", 8, Load.FLOOD), equal("equal16", 16, Load.FLOOD), equal("loops8", 8, Load.LOOP),
        tail("tail8", 8), weighted("weights", Load.FLOOD), weighted("weightloops", Load.LOOP),
        equal("copies3", 3, Load.COPIES), weighted("weightcopies", Load.COPIES),
        weighted("weightmixed", Load.COPIES_AND_KERNELS),
        new ShareSet("greedy", List.of(new Tenant(0, Load.GREEDY), new Tenant(1, Load.LOOP),
            new Tenant(1, Load.LOOP)), false),
        new ShareSet("mixed", List.of(new Tenant(1, Load.FLOOD), new Tenant(1, Load.LOOP)), false));

    private static ShareSet equal(String name, int count, Load load) {
        return new ShareSet(name, Collections.nCopies(count, new Tenant(1, load)), false);
    }

    /** One program that waits for each kernel, beside others. */
    private static ShareSet tail(String name, int count) {
        List<Tenant> tenants = new ArrayList<>(Collections.nCopies(count, new Tenant(1, Load.FLOOD)));
        tenants.set(0, new Tenant(0, Load.LOOP));
        return new ShareSet(name, List.copyOf(tenants), false);
    }

    private static ShareSet weighted(String name, Load load) {
        return new ShareSet(name, List.of(new Tenant(1, load), new Tenant(2, load), new Tenant(4, load)), true);
    }

    /** All sets. */
    static List<ShareSet> all() {
        return ALL;
    }

    /** Whether all programs are equal and launch kernels as fast as they can, for which there are goals. */
    boolean isEqualFlood() {
        return tenants.stream().allMatch(new Tenant(1, Load.FLOOD)::equals);
    }

    /** Whether the first program waits for each kernel beside others that never do; its waits have a goal. */
    boolean isTail() {
        return tenants.getFirst().equals(new Tenant(0, Load.LOOP));
    }
}
