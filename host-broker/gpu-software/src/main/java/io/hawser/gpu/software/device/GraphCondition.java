package io.hawser.gpu.software.device;

/**
 * A condition of a graph: a 32-bit number in device memory, whose address is its handle. It exists as long as its graph
 * or an executable graph of it. Decoder's thread only.
 */
final class GraphCondition {
    static final int BYTES = 4;
    private static final int ASSIGN_DEFAULT = 1; // CU_GRAPH_COND_ASSIGN_DEFAULT

    final long address;
    final int defaultValue;
    /** Whether each execution begins with the default value. */
    final boolean isAssigned;
    /** The end of the last launch that reads it; null before the first. */
    Work last;
    /** How many of these exist: the graph, and executable graphs. */
    int holders = 1;

    GraphCondition(long address, int defaultValue, int flags) {
        this.address = address;
        this.defaultValue = defaultValue;
        this.isAssigned = (flags & ASSIGN_DEFAULT) != 0;
    }
}
