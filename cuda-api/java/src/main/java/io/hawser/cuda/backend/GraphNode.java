package io.hawser.cuda.backend;

import java.lang.foreign.MemorySegment;

/** What a node of a graph does, with its parameters. Whoever takes one copies what it refers to before it returns. */
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
     * @param params parameters at the offsets that {@link GpuBackend#function} gave.
     * @param attributes array of CUlaunchAttribute, may be empty.
     */
    record Kernel(long function, int gridX, int gridY, int gridZ, int blockX, int blockY, int blockZ,
            int sharedBytes, int flags, MemorySegment params, MemorySegment attributes) implements GraphNode { }

    /** Where an end of a copy lies. */
    enum Place {
        /** Device memory. */
        DEVICE,
        /** Host memory: of the attached region, or staging memory. */
        HOST,
        /** A CUDA array. */
        ARRAY
    }

    /**
     * One end of a copy.
     *
     * @param place where it lies.
     * @param address of the first byte; an array's handle.
     * @param pitch bytes from a row to the next; nothing for an array.
     * @param height rows from a slice to the next; nothing for an array.
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
     * @param destination where to.
     * @param source where from.
     * @param widthBytes length of a row, over 0.
     * @param rows over 0.
     * @param slices over 0.
     */
    record Copy(End destination, End source, long widthBytes, long rows, long slices) implements GraphNode { }

    /**
     * A fill.
     *
     * @param address first byte.
     * @param pitch bytes from a row to the next.
     * @param value the low {@code elementBytes} bytes count.
     * @param elementBytes 1, 2 or 4.
     * @param width elements of a row, over 0.
     * @param rows over 0.
     */
    record Fill(long address, long pitch, int value, int elementBytes, long width, long rows) implements GraphNode { }

    /**
     * A function of the worker, run at each execution: {@link GraphBackend#hostFunctions}.
     *
     * @param id says which.
     */
    record Host(long id) implements GraphNode { }

    /** A point that only joins and parts dependencies. */
    record Empty() implements GraphNode { }

    /**
     * A graph inside. Adding the node moves it in: it keeps its handle and its nodes theirs, but goes with the node.
     * Setting such a node takes over the parameters of a graph of the same form, which stays as it is.
     *
     * @param graph the backend's, not inside of a node yet.
     */
    record Child(long graph) implements GraphNode { }

    /**
     * Records an event.
     *
     * @param event the backend's.
     */
    record EventRecord(long event) implements GraphNode { }

    /**
     * Waits for what an event has recorded last when the graph is launched.
     *
     * @param event the backend's.
     */
    record EventWait(long event) implements GraphNode { }

    /**
     * Frees what an allocating node of this or another graph has allocated.
     *
     * @param address of the memory.
     */
    record Free(long address) implements GraphNode { }
}
