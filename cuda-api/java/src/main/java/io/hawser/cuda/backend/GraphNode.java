package io.hawser.cuda.backend;

import java.lang.foreign.MemorySegment;

/** The work of a graph's node, with its parameters. A receiver copies the referenced memory before it returns. */
public sealed interface GraphNode {
    /**
     * A kernel.
     *
     * @param function the kernel.
     * @param gridX blocks.
     * @param gridY blocks.
     * @param gridZ blocks.
     * @param blockX threads.
     * @param blockY threads.
     * @param blockZ threads.
     * @param sharedBytes dynamic shared memory.
     * @param flags bit 0: cooperative.
     * @param params parameters at the offsets from {@link GpuBackend#function}.
     * @param attributes array of CUlaunchAttribute, may be empty.
     */
    record Kernel(long function, int gridX, int gridY, int gridZ, int blockX, int blockY, int blockZ,
        int sharedBytes, int flags, MemorySegment params, MemorySegment attributes) implements GraphNode {}

    /** The location of a copy's end. */
    enum Place {
        /** Device memory. */
        DEVICE,
        /** Host memory: in the attached region, or staging memory. */
        HOST,
        /** A CUDA array. */
        ARRAY
    }

    /**
     * One end of a copy.
     *
     * @param place kind of memory.
     * @param address address of the first byte; for an array, its handle.
     * @param pitch bytes from a row to the next; unused for an array.
     * @param height rows from a slice to the next; unused for an array.
     * @param xBytes first byte in an array's row, else 0.
     * @param y first row of an array, else 0.
     * @param z first slice of an array, else 0.
     */
    record End(Place place, long address, long pitch, long height, long xBytes, long y, long z) {
        /** An end in device or host memory. */
        public End(long address, boolean isHost, long pitch, long height) {
            this(isHost ? Place.HOST : Place.DEVICE, address, pitch, height, 0, 0, 0);
        }

        /** Whether it is host memory. */
        public boolean isHost() {
            return place == Place.HOST;
        }

        /** Bytes from a slice to the next. */
        public long slicePitch() {
            return pitch * height;
        }
    }

    /**
     * A copy of {@code slices} times {@code rows} rows.
     *
     * @param destination end that receives the bytes.
     * @param source end that gives the bytes.
     * @param widthBytes length of a row, over 0.
     * @param rows over 0.
     * @param slices over 0.
     */
    record Copy(End destination, End source, long widthBytes, long rows, long slices) implements GraphNode {}

    /**
     * A fill.
     *
     * @param address first byte.
     * @param pitch bytes from a row to the next.
     * @param value only the low {@code elementBytes} bytes are used.
     * @param elementBytes 1, 2 or 4.
     * @param width elements of a row, over 0.
     * @param rows over 0.
     */
    record Fill(long address, long pitch, int value, int elementBytes, long width, long rows) implements GraphNode {}

    /**
     * A function of the worker, run at each execution: {@link GraphBackend#hostFunctions}.
     *
     * @param id the number that the function gets.
     */
    record Host(long id) implements GraphNode {}

    /** A point without work, which only has dependencies. */
    record Empty() implements GraphNode {}

    /**
     * An inner graph. Adding the node moves the graph into it: the graph and its nodes keep their handles but end with
     * the node. Setting such a node copies the parameters of a graph of the same form; that graph does not change.
     *
     * @param graph handle of the backend; not yet inside another node.
     */
    record Child(long graph) implements GraphNode {}

    /**
     * Records an event.
     *
     * @param event handle of the backend.
     */
    record EventRecord(long event) implements GraphNode {}

    /**
     * Waits for the work that an event recorded last before the graph's launch.
     *
     * @param event handle of the backend.
     */
    record EventWait(long event) implements GraphNode {}

    /**
     * Waits for values in memory and writes of values, in order.
     *
     * @param operations array of 1 to 256 CUstreamBatchMemOpParams.
     */
    record MemoryOperations(MemorySegment operations) implements GraphNode {}

    /**
     * Frees the memory of an allocating node of this or another graph.
     *
     * @param address address of the memory.
     */
    record Free(long address) implements GraphNode {}
}
