package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;

import io.hawser.cuda.backend.GraphBackend;
import io.hawser.cuda.backend.GraphNode;
import io.hawser.cuda.generated.CUgraphConditionalNodeType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.LongConsumer;
import java.util.function.Supplier;

/** Graphs of the software GPU: a launch issues the nodes as {@link Work} with their dependencies. */
final class Graphs implements GraphBackend {
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
    // CUDA 13.0 cuda.h, CUgraphInstantiate_flags: AUTO_FREE_ON_LAUNCH, UPLOAD, DEVICE_LAUNCH, USE_NODE_PRIORITY
    private static final long AUTO_FREE_ON_LAUNCH = 1;
    private static final long DEVICE_LAUNCH = 4;
    private static final long ALL_FLAGS = 15;
    // CUgraphInstantiateResult: CUDA_GRAPH_INSTANTIATE_ERROR, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE
    private static final int INSTANTIATE_ERROR = 1;
    private static final int INVALID_STRUCTURE = 2;
    private static final int CONDITION_UNUSED = 5; // CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED
    // CUgraphMem_attribute: ..._USED_MEM_CURRENT, _USED_MEM_HIGH, _RESERVED_MEM_CURRENT, _RESERVED_MEM_HIGH
    private static final int MEMORY_ATTRIBUTES = 4;

    private final Device device;
    private final Launcher launcher;
    private final GraphBodies bodies;
    private final GraphCaptures captures = new GraphCaptures(this);
    private LongConsumer hostFunction = id -> {};

    Graphs(Device device, Launcher launcher) {
        this.device = device;
        this.launcher = launcher;
        this.bodies = new GraphBodies(device.memory.arena());
    }

    @Override
    public void hostFunctions(LongConsumer function) {
        hostFunction = function;
    }

    @Override
    public int create(MemorySegment out) {
        out.set(LONG, 0, make().handle);
        return CUDA_SUCCESS;
    }

    Graph make() {
        Graph graph = new Graph(device.handles.peek());
        device.handles.add(graph);
        return graph;
    }

    private Graph graph(long handle) {
        return device.handles.get(handle, Graph.class);
    }

    private Graph.Node node(long handle) {
        return device.handles.get(handle, Graph.Node.class);
    }

    private GraphExec exec(long handle) {
        return device.handles.get(handle, GraphExec.class);
    }

    @Override
    public int destroy(long handle) {
        Graph graph = graph(handle);
        if (graph == null || graph.owner != null) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        forget(graph);
        return CUDA_SUCCESS;
    }

    void forget(Graph graph) {
        List.copyOf(graph.nodes).forEach(this::forget);
        graph.conditions.values().forEach(this::release);
        device.handles.remove(graph.handle);
    }

    private void forget(Graph.Node node) {
        node.graph.remove(node);
        device.handles.remove(node.handle);
        node.inner.forEach(this::forget);
        if (node.memory != null) {
            device.graphMemory.forget(node);
            node.memory.holders--;
            device.freeIfUnused(node.memory);
        }
    }

    @Override
    public int add(long graphHandle, long[] dependencies, GraphNode parameters, MemorySegment out) {
        Graph graph = graph(graphHandle);
        int check = graph == null ? CUDA_ERROR_INVALID_VALUE
            : !graph.mayContain(parameters) ? CUDA_ERROR_NOT_SUPPORTED : check(parameters);
        if (check != CUDA_SUCCESS) {
            return check;
        }
        Graph.Node node = new Graph.Node(graph, owned(parameters));
        if (parameters instanceof GraphNode.Child child) {
            Graph inner = graph(child.graph());
            if (inner.owner != null || inner == graph || inner.holds(graph)) {
                return CUDA_ERROR_INVALID_VALUE;
            }
            if (inner.isConditional()) {
                return CUDA_ERROR_NOT_SUPPORTED;
            }
            node.inner.add(inner);
        }
        if (!follow(node, dependencies)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        node.inner.forEach(inner -> inner.owner = node);
        if (parameters instanceof GraphNode.Free free) {
            node.frees = device.graphMemory.at(free.address());
        }
        append(node);
        out.set(LONG, 0, node.handle);
        return CUDA_SUCCESS;
    }

    private boolean follow(Graph.Node node, long[] dependencies) {
        List<Graph.Node> before = new ArrayList<>();
        for (long dependency : dependencies) {
            Graph.Node other = node(dependency);
            if (other == null || other.graph != node.graph) {
                return false;
            }
            before.add(other);
        }
        for (Graph.Node other : before) {
            if (!Graph.link(other, node)) {
                before.forEach(linked -> Graph.unlink(linked, node));
                return false;
            }
        }
        return true;
    }

    void append(Graph.Node node) {
        node.handle = device.handles.add(node);
        node.graph.nodes.add(node);
    }

    /** Copies the parameters with their memory into the graph. An array becomes a range of device memory. */
    private GraphNode owned(GraphNode parameters) {
        if (parameters instanceof GraphNode.Copy copy) {
            return new GraphNode.Copy(memory(copy.destination(), copy), memory(copy.source(), copy),
                copy.widthBytes(), copy.rows(), copy.slices());
        }
        if (parameters instanceof GraphNode.Kernel k) {
            return new GraphNode.Kernel(k.function(), k.gridX(), k.gridY(), k.gridZ(), k.blockX(), k.blockY(),
                k.blockZ(), k.sharedBytes(), k.flags(), owned(k.params()), owned(k.attributes()));
        }
        return parameters;
    }

    /** The device memory of a copy's end; null when it names no array, or when the array is smaller than the copy. */
    private GraphNode.End memory(GraphNode.End end, GraphNode.Copy copy) {
        if (end.place() != GraphNode.Place.ARRAY) {
            return end;
        }
        ArrayMemory array = device.handles.get(end.address(), ArrayMemory.class);
        if (array == null || !SoftwareArrays.isWithin(end.xBytes(), copy.widthBytes(), array.rowBytes())
            || !SoftwareArrays.isWithin(end.y(), copy.rows(), array.rows())
            || !SoftwareArrays.isWithin(end.z(), copy.slices(), array.slices())) {
            return null;
        }
        return new GraphNode.End(array.address() + (end.z() * array.rows() + end.y()) * array.rowBytes()
            + end.xBytes(), false, array.rowBytes(), array.rows());
    }

    private static MemorySegment owned(MemorySegment bytes) {
        return Arena.ofAuto().allocate(Math.max(bytes.byteSize(), 1), Long.BYTES).asSlice(0, bytes.byteSize())
            .copyFrom(bytes);
    }

    private int check(GraphNode parameters) {
        return switch (parameters) {
            case GraphNode.Kernel kernel -> {
                Launcher.Request request = request(kernel);
                yield request == null ? CUDA_ERROR_INVALID_HANDLE : launcher.check(request);
            }
            case GraphNode.Copy copy -> memory(copy.destination(), copy) == null || memory(copy.source(), copy) == null
                ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
            case GraphNode.Child child -> graph(child.graph()) == null ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
            case GraphNode.EventRecord record -> checkEvent(record.event());
            case GraphNode.EventWait wait -> checkEvent(wait.event());
            case GraphNode.Free free -> device.graphMemory.at(free.address()) == null ? CUDA_ERROR_INVALID_VALUE
                : CUDA_SUCCESS;
            case GraphNode.MemoryOperations operations -> CUDA_ERROR_NOT_SUPPORTED; // as streams of the software GPU
            default -> CUDA_SUCCESS;
        };
    }

    private int checkEvent(long event) {
        return device.handles.get(event, Event.class) == null ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
    }

    private Launcher.Request request(GraphNode.Kernel k) {
        KernelFunction function = device.function(k.function());
        return function == null ? null : new Launcher.Request(function, new int[] {k.gridX(), k.gridY(), k.gridZ()},
            new int[] {k.blockX(), k.blockY(), k.blockZ()}, k.sharedBytes(), k.flags(), k.params(), k.attributes());
    }

    @Override
    public int addAlloc(long graphHandle, long[] dependencies, int ordinal, long bytes, MemorySegment out) {
        Graph graph = graph(graphHandle);
        if (graph != null && graph.isBody()) {
            return CUDA_ERROR_NOT_SUPPORTED;
        }
        if (graph == null || ordinal != 0 || bytes <= 0) {
            return ordinal != 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
        }
        Graph.Node node = new Graph.Node(graph, new GraphNode.Empty());
        if (!follow(node, dependencies)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        node.memory = device.graphMemory.reuse(node, bytes);
        if (node.memory == null) {
            long address = device.allocate(bytes);
            if (address == 0) {
                graph.remove(node);
                return CUDA_ERROR_OUT_OF_MEMORY;
            }
            node.memory = device.graphMemory.add(node, address, device.memory.sizeOf(address));
        }
        node.memory.holders = 1;
        append(node);
        out.set(LONG, 0, node.handle);
        out.set(LONG, Long.BYTES, node.memory.address);
        return CUDA_SUCCESS;
    }

    @Override
    public int addCondition(long graphHandle, int defaultValue, int flags, MemorySegment out) {
        Graph graph = graph(graphHandle);
        int check = graph == null ? CUDA_ERROR_INVALID_VALUE : device.check();
        long address = check == CUDA_SUCCESS ? device.allocate(GraphCondition.BYTES) : 0;
        if (address == 0) {
            return check != CUDA_SUCCESS ? check : CUDA_ERROR_OUT_OF_MEMORY;
        }
        device.memory.arena().slice(address, GraphCondition.BYTES).fill((byte) 0);
        graph.conditions.put(address, new GraphCondition(address, defaultValue, flags));
        out.set(LONG, 0, address);
        return CUDA_SUCCESS;
    }

    /** Gives up a hold of a condition; the last one frees it. */
    private void release(GraphCondition condition) {
        if (--condition.holders == 0) {
            device.freeLater();
            Work free = new Work(device.scheduler, () -> device.freeNow(condition.address));
            free.follow(condition.last);
            free.issueInline();
        }
    }

    @Override
    public int addConditional(long graphHandle, long[] dependencies, long handle, int type, MemorySegment out) {
        Graph graph = graph(graphHandle);
        GraphCondition condition = graph == null ? null : graph.condition(handle);
        long bodies = out.byteSize() / Long.BYTES - 1;
        boolean isValid = switch (type) {
            case CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_IF -> bodies == 1 || bodies == 2;
            case CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_WHILE -> bodies == 1;
            case CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_SWITCH -> bodies > 0;
            default -> false;
        };
        Graph.Node node = new Graph.Node(graph, new GraphNode.Empty());
        if (condition == null || !isValid || !follow(node, dependencies)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        node.condition = condition;
        node.conditionalType = type;
        append(node);
        out.set(LONG, 0, node.handle);
        for (int i = 1; i <= bodies; i++) {
            Graph body = make();
            body.owner = node;
            node.inner.add(body);
            out.setAtIndex(LONG, i, body.handle);
        }
        return CUDA_SUCCESS;
    }

    @Override
    public int set(long handle, GraphNode parameters) {
        Graph.Node node = node(handle);
        if (node == null || node.parameters.getClass() != parameters.getClass() || !node.inner.isEmpty()) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        int check = check(parameters);
        if (check == CUDA_SUCCESS) {
            node.parameters = owned(parameters);
        }
        return check;
    }

    @Override
    public int addEdges(long graph, long[] from, long[] to, MemorySegment edgeData) {
        return edges(graph, from, to, true);
    }

    @Override
    public int removeEdges(long graph, long[] from, long[] to, MemorySegment edgeData) {
        return edges(graph, from, to, false);
    }

    /** Adds or removes all edges or none. Edge data permits a follower to start early; the software GPU ignores it. */
    private int edges(long handle, long[] from, long[] to, boolean add) {
        Graph graph = graph(handle);
        int done = 0;
        while (graph != null && done < from.length) {
            Graph.Node first = node(from[done]);
            Graph.Node second = node(to[done]);
            if (first == null || second == null || first.graph != graph || second.graph != graph
                || !(add ? Graph.link(first, second) : Graph.unlink(first, second))) {
                break;
            }
            done++;
        }
        if (graph != null && done == from.length) {
            return CUDA_SUCCESS;
        }
        while (--done >= 0) {
            boolean undone = add ? Graph.unlink(node(from[done]), node(to[done]))
                : Graph.link(node(from[done]), node(to[done]));
            assert undone;
        }
        return CUDA_ERROR_INVALID_VALUE;
    }

    @Override
    public int removeNode(long handle) {
        Graph.Node node = node(handle);
        if (node == null) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        forget(node);
        return CUDA_SUCCESS;
    }

    @Override
    public int instantiate(long handle, long flags, MemorySegment out) {
        Graph graph = graph(handle);
        out.set(LONG, Long.BYTES, 0);
        out.set(INT, 2L * Long.BYTES, INSTANTIATE_ERROR);
        if ((flags & DEVICE_LAUNCH) != 0) {
            return CUDA_ERROR_NOT_SUPPORTED; // kernels of the software GPU cannot launch graphs
        }
        GraphPlan plan = graph == null || graph.isBody() || (flags & ~ALL_FLAGS) != 0 ? null : GraphPlan.of(graph);
        if (plan == null) {
            out.set(INT, 2L * Long.BYTES, INVALID_STRUCTURE);
            return CUDA_ERROR_INVALID_VALUE;
        }
        Set<GraphCondition> used = plan.conditions();
        if (!used.containsAll(graph.conditions.values())) {
            out.set(INT, 2L * Long.BYTES, CONDITION_UNUSED);
            return CUDA_ERROR_INVALID_VALUE;
        }
        out.set(INT, 2L * Long.BYTES, 0);
        GraphExec exec = new GraphExec(plan, flags);
        hold(exec, used);
        exec.memories.forEach(memory -> memory.holders++);
        out.set(LONG, 0, device.handles.add(exec));
        return CUDA_SUCCESS;
    }

    /** Makes an executable graph hold these conditions instead of its former ones. */
    private void hold(GraphExec exec, Set<GraphCondition> conditions) {
        conditions.forEach(condition -> condition.holders++);
        List.copyOf(exec.conditions).forEach(this::release);
        exec.conditions.clear();
        exec.conditions.addAll(conditions);
    }

    @Override
    public int destroyExec(long handle) {
        GraphExec exec = exec(handle);
        if (exec == null) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        device.handles.remove(handle);
        exec.memories.forEach(memory -> {
            memory.holders--;
            device.freeIfUnused(memory);
        });
        hold(exec, Set.of());
        List<Long> workspaces = new ArrayList<>();
        exec.plan.forEach(step -> {
            if (step.workspace != 0) {
                workspaces.add(step.workspace);
            }
        });
        Work free = new Work(device.scheduler, () -> workspaces.forEach(device.memory::free));
        free.follow(exec.last);
        free.issueInline();
        return CUDA_SUCCESS;
    }

    @Override
    public int setInExec(long handle, long node, GraphNode parameters) {
        GraphExec exec = exec(handle);
        GraphPlan.Step step = exec == null ? null : exec.plan.find(node);
        if (step == null || step.parameters.getClass() != parameters.getClass()
            || !GraphExec.sameKind(step.parameters, parameters)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        int check = check(parameters);
        if (check != CUDA_SUCCESS) {
            return check;
        }
        if (parameters instanceof GraphNode.Child child) {
            GraphPlan plan = GraphPlan.of(graph(child.graph()));
            GraphPlan inner = step.inner.getFirst();
            if (plan == null || GraphExec.difference(inner, plan) != null) {
                return CUDA_ERROR_INVALID_VALUE;
            }
            GraphExec.replaceParameters(inner, plan);
        } else {
            step.parameters = owned(parameters);
        }
        return CUDA_SUCCESS;
    }

    @Override
    public int update(long handle, long graphHandle, MemorySegment out) {
        GraphExec exec = exec(handle);
        Graph graph = graph(graphHandle);
        GraphPlan plan = exec == null || graph == null ? null : GraphPlan.of(graph);
        if (plan == null) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        GraphExec.Difference difference = GraphExec.difference(exec.plan, plan);
        out.asSlice(0, 3L * Long.BYTES).fill((byte) 0);
        if (difference != null) {
            out.set(INT, 0, difference.result());
            out.set(LONG, Long.BYTES, difference.node());
            return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
        }
        GraphExec.replaceParameters(exec.plan, plan);
        hold(exec, exec.plan.conditions());
        return CUDA_SUCCESS;
    }

    @Override
    public int enable(long handle, long node, boolean isEnabled) {
        GraphExec exec = exec(handle);
        GraphPlan.Step step = exec == null ? null : exec.plan.find(node);
        if (step == null || !(step.parameters instanceof GraphNode.Kernel
            || step.parameters instanceof GraphNode.Copy || step.parameters instanceof GraphNode.Fill)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        step.isEnabled = isEnabled;
        return CUDA_SUCCESS;
    }

    @Override
    public int upload(long handle, long streamHandle) {
        return exec(handle) == null ? CUDA_ERROR_INVALID_VALUE : device.check(device.stream(streamHandle));
    }

    @Override
    public int trim(int ordinal) {
        return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE; // no unused memory is kept
    }

    @Override
    public int memoryAttribute(int ordinal, int attribute, MemorySegment out) {
        if (ordinal != 0 || attribute < 0 || attribute >= MEMORY_ATTRIBUTES) {
            return ordinal != 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
        }
        out.set(LONG, 0, device.graphMemory.bytes(attribute));
        return CUDA_SUCCESS;
    }

    @Override
    public int setMemoryAttribute(int ordinal, int attribute, long value) {
        if (ordinal != 0 || value != 0 || !device.graphMemory.reset(attribute)) {
            return ordinal != 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
        }
        return CUDA_SUCCESS;
    }

    @Override
    public int launch(long handle, long streamHandle) {
        GraphExec exec = exec(handle);
        Stream stream = device.stream(streamHandle);
        int check = exec == null ? CUDA_ERROR_INVALID_VALUE : device.check(stream);
        if (check == CUDA_SUCCESS) {
            check = prepare(exec);
        }
        if (check != CUDA_SUCCESS) {
            return check;
        }
        Context context = stream.context;
        Work begin = context.beginGroup(stream);
        begin.follow(exec.last);
        begin.issue();
        if (!exec.conditions.isEmpty()) {
            begin = assign(List.copyOf(exec.conditions), begin, context);
        }
        exec.last = new GraphRun(exec.plan, context, device.memory.arena(), step -> body(step, context),
            event -> device.handles.get(event, Event.class)).issue(begin);
        exec.conditions.forEach(condition -> condition.last = exec.last);
        context.endGroup(stream, exec.last);
        return CUDA_SUCCESS;
    }

    /** Issues the assignment of the conditions' default values behind a point. */
    private Work assign(List<GraphCondition> conditions, Work begin, Context context) {
        Work assigned = context.work(() -> conditions.stream().filter(condition -> condition.isAssigned)
            .forEach(condition -> device.memory.arena().slice(condition.address, GraphCondition.BYTES)
                .set(INT, 0, condition.defaultValue)));
        assigned.follow(begin);
        assigned.issue();
        return assigned;
    }

    /** Determines the memory that a launch allocates and frees, and gives cooperative kernels their workspaces. */
    private int prepare(GraphExec exec) {
        List<GraphPlan.Step> steps = new ArrayList<>();
        exec.plan.forEach(steps::add);
        for (GraphPlan.Step step : steps) {
            if (step.memory != null && step.memory.isLive() && (exec.flags & AUTO_FREE_ON_LAUNCH) == 0) {
                return CUDA_ERROR_INVALID_VALUE; // CUDA requires the program to free the previous launch's memory
            }
            if (step.parameters instanceof GraphNode.Kernel kernel) {
                Launcher.Request request = request(kernel);
                if (request == null) {
                    return CUDA_ERROR_INVALID_HANDLE;
                }
                if (request.isCooperative() && step.workspace == 0) {
                    step.workspace = launcher.workspace();
                    if (step.workspace == 0) {
                        return CUDA_ERROR_OUT_OF_MEMORY;
                    }
                }
            }
        }
        steps.stream().filter(step -> step.memory != null).forEach(step -> device.graphMemory.allocate(step.memory));
        for (GraphPlan.Step step : steps) {
            if (step.frees != null) {
                device.free(step.frees);
            }
        }
        return CUDA_SUCCESS;
    }

    /** Adds what a library does to the graph of a stream that captures. */
    int capture(Stream stream, Supplier<Runnable> routine) {
        return captures.add(stream, routine);
    }

    @Override
    public int beginCapture(long stream) {
        return captures.begin(device.stream(stream));
    }

    @Override
    public int endCapture(long stream, MemorySegment out, boolean communicates) {
        return captures.end(device.stream(stream), out);
    }

    @Override
    public int copy(long graph, MemorySegment out) {
        return captures.copy(graph(graph), out);
    }

    /** The work of a step, which can be executed several times, one after the other; null for a point. */
    private Work.Body body(GraphPlan.Step step, Context context) {
        if (step.routine != null) {
            return GraphBodies.routine(step.routine.get(), context);
        }
        return switch (step.parameters) {
            case GraphNode.Kernel kernel -> {
                Launcher.Request request = request(kernel);
                long workspace = step.workspace;
                yield () -> launcher.body(request, context, workspace).run();
            }
            case GraphNode.Copy copy -> bodies.copy(copy, context);
            case GraphNode.Fill fill -> bodies.fill(fill, context);
            case GraphNode.Host host -> GraphBodies.routine(() -> hostFunction.accept(host.id()), context);
            default -> null;
        };
    }
}
