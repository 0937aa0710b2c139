package io.hawser.cuda.backend;

import java.lang.foreign.MemorySegment;
import java.util.function.LongConsumer;

/**
 * Graphs of one GPU, as the Driver API has them: cuGraph and its like. Methods answer a CUresult and never throw for
 * what a guest may cause. Calls come from the decoder's thread in the guest's order, none blocks; the context that is
 * current is the one in which copies, fills and allocations of an added node run. Handles are the backend's own.
 * Addresses and sizes have been checked when a node gets here.
 */
public interface GraphBackend {
    /**
     * What {@link GraphNode.Host} nodes run: given a node's id, on any thread, once at each execution of the node; it
     * may block, and what depends on the node goes on when it returns. Set before the first such node is added.
     */
    void hostFunctions(LongConsumer function);

    /** Makes an empty graph; {@code out} receives its handle (8 bytes). */
    int create(MemorySegment out);

    /**
     * Destroys a graph with its nodes and the graphs inside of them; what was instantiated from it stays. Not for a
     * graph that is inside of a node.
     */
    int destroy(long graph);

    /**
     * Adds a node.
     *
     * @param graph to which.
     * @param dependencies nodes of the same graph, each once.
     * @param node what it does.
     * @param out receives its handle (8 bytes).
     */
    int add(long graph, long[] dependencies, GraphNode node, MemorySegment out);

    /**
     * Adds a node that allocates memory of the current context's device when it is executed.
     *
     * @param graph to which.
     * @param dependencies nodes of the same graph, each once.
     * @param device on which.
     * @param bytes how much, over 0.
     * @param out receives the node's handle and the memory's address, the same at each execution (two 64-bit numbers).
     */
    int addAlloc(long graph, long[] dependencies, int device, long bytes, MemorySegment out);

    /** Changes a node of a graph; it stays of its kind. Instantiated graphs are not affected. */
    int set(long node, GraphNode parameters);

    /**
     * Adds dependencies.
     *
     * @param graph of the nodes.
     * @param from nodes that go first.
     * @param to as many nodes, each of which goes after its partner.
     * @param edgeData as many CUgraphEdgeData; empty for plain dependencies.
     */
    int addEdges(long graph, long[] from, long[] to, MemorySegment edgeData);

    /** Removes dependencies; parameters as for {@link #addEdges}. */
    int removeEdges(long graph, long[] from, long[] to, MemorySegment edgeData);

    /** Removes a node with its dependencies. */
    int removeNode(long node);

    /**
     * Makes a graph executable.
     *
     * @param flags CUgraphInstantiate_flags without UPLOAD.
     * @param out receives the executable graph's handle, the handle of the node to blame or 0 (8 bytes each), and a
     *     CUgraphInstantiateResult (4 bytes); the latter two also when it fails.
     */
    int instantiate(long graph, long flags, MemorySegment out);

    /** Destroys an executable graph; executions that were launched go on. */
    int destroyExec(long exec);

    /**
     * Changes a node for later launches of an executable graph.
     *
     * @param exec which.
     * @param node of the graph that it was instantiated from, or of one inside of that.
     * @param parameters of the node's kind.
     */
    int setInExec(long exec, long node, GraphNode parameters);

    /**
     * Takes over all parameters of a graph of the same form.
     *
     * @param out receives the CUgraphExecUpdateResult (4 bytes), 4 bytes of padding, the handle of the node in
     *     {@code graph} that does not fit and of its partner in a wrong dependency (8 bytes each; 0 for none).
     * @return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE when the form differs; nothing has changed then.
     */
    int update(long exec, long graph, MemorySegment out);

    /** Has a kernel, copy or fill node of an executable graph executed, or passed over. */
    int enable(long exec, long node, boolean isEnabled);

    /** Launches an executable graph in a stream; launches of the same one never overlap. */
    int launch(long exec, long stream);

    /** Prepares a launch. */
    int upload(long exec, long stream);

    /** Gives back what a device keeps for graphs and does not use. */
    int trim(int device);

    /**
     * Asks how much memory a device has for graphs.
     *
     * @param attribute CUgraphMem_attribute.
     * @param out receives bytes (8 bytes).
     */
    int memoryAttribute(int device, int attribute, MemorySegment out);

    /** Resets such a figure; only to 0, and only the highest values. */
    int setMemoryAttribute(int device, int attribute, long value);
}
