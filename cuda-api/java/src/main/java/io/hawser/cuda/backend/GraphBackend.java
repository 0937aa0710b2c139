package io.hawser.cuda.backend;

import java.lang.foreign.MemorySegment;
import java.util.function.LongConsumer;

/**
 * Graphs of one GPU, as in the Driver API: cuGraph... and related functions. Methods return a CUresult and never throw
 * for any input of a guest. The decoder's thread calls them in the guest's order; none blocks. Copies, fills and
 * allocations of an added node run in the context that is current at the call. Handles are the backend's own. The
 * caller has checked addresses and sizes.
 */
public interface GraphBackend {
    /**
     * Sets the function that {@link GraphNode.Host} nodes run. It gets the node's id, on any thread, once at each
     * execution of the node. It may block; dependent nodes continue when it returns. Set it before adding the first
     * such node.
     */
    void hostFunctions(LongConsumer function);

    /** Creates an empty graph; {@code out} receives its handle (8 bytes). */
    int create(MemorySegment out);

    /**
     * Destroys a graph with its nodes and its inner graphs. Executable graphs made from it stay. Not for an inner
     * graph.
     */
    int destroy(long graph);

    /**
     * Adds a node.
     *
     * @param graph the graph that receives the node.
     * @param dependencies nodes of the same graph, each once.
     * @param node the node's work.
     * @param out receives its handle (8 bytes).
     */
    int add(long graph, long[] dependencies, GraphNode node, MemorySegment out);

    /**
     * Adds a node that allocates memory of the current context's device when it is executed.
     *
     * @param graph the graph that receives the node.
     * @param dependencies nodes of the same graph, each once.
     * @param device the device of the memory.
     * @param bytes size of the memory, over 0.
     * @param out receives the node's handle and the memory's address, the same at each execution (two 64-bit numbers).
     */
    int addAlloc(long graph, long[] dependencies, int device, long bytes, MemorySegment out);

    /**
     * Makes a condition of a graph: a number on the device that kernels set, in the current context.
     *
     * @param graph the graph that contains its conditional node, in itself or in a graph inside.
     * @param defaultValue its value at the beginning of each execution.
     * @param flags CU_GRAPH_COND_ASSIGN_DEFAULT, or 0 when executions keep the value.
     * @param out receives its handle, which kernels get (8 bytes).
     */
    int addCondition(long graph, int defaultValue, int flags, MemorySegment out);

    /**
     * Adds a node that executes one of its graphs, its bodies, or none, in the current context.
     *
     * @param graph the graph that receives the node.
     * @param dependencies nodes of the same graph, each once.
     * @param condition handle from {@link #addCondition}.
     * @param type CUgraphConditionalNodeType.
     * @param out receives the node's handle, then the handles of its bodies (8 bytes each). The bodies are empty inner
     *     graphs, as many as have room.
     */
    int addConditional(long graph, long[] dependencies, long condition, int type, MemorySegment out);

    /** Changes a node of a graph; its kind stays. Instantiated graphs do not change. */
    int set(long node, GraphNode parameters);

    /**
     * Adds dependencies.
     *
     * @param graph graph of the nodes.
     * @param from nodes that run first.
     * @param to as many nodes; each depends on its partner in {@code from}.
     * @param edgeData as many CUgraphEdgeData; empty for edges without data.
     */
    int addEdges(long graph, long[] from, long[] to, MemorySegment edgeData);

    /** Removes dependencies; parameters as for {@link #addEdges}. */
    int removeEdges(long graph, long[] from, long[] to, MemorySegment edgeData);

    /** Removes a node with its dependencies. */
    int removeNode(long node);

    /**
     * Instantiates a graph as an executable graph.
     *
     * @param flags CUgraphInstantiate_flags without UPLOAD.
     * @param out receives the executable graph's handle, the handle of the faulty node or 0 (8 bytes each), and a
     *     CUgraphInstantiateResult (4 bytes); the latter two also when it fails.
     */
    int instantiate(long graph, long flags, MemorySegment out);

    /** Destroys an executable graph; its running launches continue. */
    int destroyExec(long exec);

    /**
     * Changes a node for later launches of an executable graph.
     *
     * @param exec executable graph.
     * @param node node of the graph that it was instantiated from, or of a graph inside that one.
     * @param parameters parameters of the node's kind.
     */
    int setInExec(long exec, long node, GraphNode parameters);

    /**
     * Replaces all parameters by those of a graph of the same form.
     *
     * @param out receives the CUgraphExecUpdateResult (4 bytes), 4 bytes of padding, and two nodes (8 bytes each; 0 for
     *     none): the node of {@code graph} that does not fit, and its partner in a wrong dependency.
     * @return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE when the form differs; then nothing has changed.
     */
    int update(long exec, long graph, MemorySegment out);

    /** Sets whether a kernel, copy or fill node of an executable graph is executed or skipped. */
    int enable(long exec, long node, boolean isEnabled);

    /** Launches an executable graph in a stream; launches of the same graph never overlap. */
    int launch(long exec, long stream);

    /** Prepares a launch. */
    int upload(long exec, long stream);

    /** Frees memory that a device reserves for graphs but does not use. */
    int trim(int device);

    /** Begins to capture a stream's work into a new graph. Calls that are unsafe during a capture remain possible. */
    int beginCapture(long stream);

    /**
     * Ends the capture of a stream.
     *
     * @param out receives the graph's handle, the number of its nodes, and the bytes that they allocate (8 bytes each).
     * @param communicates whether NCCL has made the nodes. They may wait for events of its communicators and record
     *     them, and call its functions.
     * @return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED when a call has ended the capture before; CUDA_ERROR_NOT_SUPPORTED
     *     for other nodes that would use the host. There is no graph then.
     */
    int endCapture(long stream, MemorySegment out, boolean communicates);

    /**
     * Copies a graph that allocates no memory.
     *
     * @param graph the graph, also one inside a node.
     * @param out receives the copy's handle (8 bytes).
     */
    int copy(long graph, MemorySegment out);

    /**
     * Reads how much memory a device has for graphs.
     *
     * @param attribute CUgraphMem_attribute.
     * @param out receives bytes (8 bytes).
     */
    int memoryAttribute(int device, int attribute, MemorySegment out);

    /** Resets such a figure: only to 0, and only the highest values. */
    int setMemoryAttribute(int device, int attribute, long value);
}
