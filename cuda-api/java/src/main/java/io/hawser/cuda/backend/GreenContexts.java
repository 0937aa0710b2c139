package io.hawser.cuda.backend;

import java.lang.foreign.MemorySegment;

/**
 * Green contexts: parts of a device's multiprocessors, each with streams of its own. They share all other objects of
 * their primary context. {@link GpuBackend#destroyContext} ends them. Methods return a CUresult. Decoder's thread.
 */
public interface GreenContexts {
    /**
     * The multiprocessors that a green context has or a split divides.
     *
     * @param device ordinal.
     * @param context a green context of the device; 0 for the whole device.
     */
    record Whole(int device, long context) {}

    /**
     * A division into equal groups, as cuDevSmResourceSplitByCount defines it.
     *
     * @param whole what is divided.
     * @param flags CUdevSmResourceSplit_flags.
     * @param minCount least number of multiprocessors of a group.
     * @param groups most groups; 0 for as many as possible.
     */
    record Split(Whole whole, int flags, int minCount, int groups) {}

    /** Describes multiprocessors; {@code out} receives a CUdevSmResource. */
    int resource(Whole whole, MemorySegment out);

    /**
     * Computes a division.
     *
     * @param out receives two CUdevSmResource, of a group and of the rest, and the number of groups (4 bytes). A rest
     *     of 0 multiprocessors is none.
     */
    int split(Split split, MemorySegment out);

    /**
     * Creates a green context.
     *
     * @param primary the device's primary context.
     * @param split the division; a guest chose its numbers.
     * @param parts the groups that the context gets, from 0; the number of groups stands for the rest. Empty: the
     *     whole.
     * @param out receives the context (8 bytes).
     */
    int create(long primary, Split split, int[] parts, MemorySegment out);
}
