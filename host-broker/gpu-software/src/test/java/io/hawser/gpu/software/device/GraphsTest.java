package io.hawser.gpu.software.device;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import io.hawser.cuda.backend.GraphBackend;
import io.hawser.cuda.backend.GraphNode;
import io.hawser.cuda.backend.GraphNode.End;
import io.hawser.cuda.generated.CUDA_ARRAY3D_DESCRIPTOR;
import io.hawser.cuda.generated.CUgraphConditionalNodeType;
import io.hawser.cuda.generated.CUresult;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Graphs through the backend's interface: order, boxes, memory, and updates of parameters. */
@Timeout(300)
class GraphsTest {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
    private static final long BYTES = 4096;

    private final SoftwareBackend backend = new SoftwareBackend(64 << 20, 4);
    private final GraphBackend graphs = backend.graphs();
    private final MemorySegment out = Arena.ofAuto().allocate(64, 8);
    private final List<Long> calls = new CopyOnWriteArrayList<>();
    private long context;

    @BeforeEach
    void makeContext() {
        ok(backend.createContext(0, 0, true, out));
        context = out.get(LONG, 0);
        ok(backend.setCurrent(context));
        graphs.hostFunctions(calls::add);
    }

    @AfterEach
    void close() {
        backend.close();
    }

    private static void ok(int result) {
        assertEquals(CUresult.CUDA_SUCCESS, result);
    }

    private long allocate() {
        ok(backend.driver().cuMemAlloc_v2(out, BYTES));
        return out.get(LONG, 0);
    }

    private long graph() {
        ok(graphs.create(out));
        return out.get(LONG, 0);
    }

    private long node(long graph, GraphNode node, long... before) {
        ok(graphs.add(graph, before, node, out));
        return out.get(LONG, 0);
    }

    private static GraphNode fill(long address, int value) {
        return new GraphNode.Fill(address, BYTES, value, 1, BYTES, 1);
    }

    private static GraphNode copy(long to, long from) {
        return new GraphNode.Copy(new End(to, false, BYTES, 1), new End(from, false, BYTES, 1), BYTES, 1, 1);
    }

    private long executable(long graph) {
        ok(graphs.instantiate(graph, 0, out));
        return out.get(LONG, 0);
    }

    private void run(long exec) throws Exception {
        ok(graphs.launch(exec, 0));
        synchronise();
    }

    private void synchronise() throws Exception {
        CompletableFuture<Integer> reached = new CompletableFuture<>();
        ok(backend.whenStreamReached(context, 0, reached::complete));
        ok(reached.get(60, TimeUnit.SECONDS));
    }

    private int byteAt(long address) throws Exception {
        MemorySegment host = Arena.ofAuto().allocate(1);
        ok(backend.copyDtoH(host, address, 0));
        synchronise();
        return host.get(ValueLayout.JAVA_BYTE, 0);
    }

    /** A conditional node with as many bodies; out has their handles behind the node's. */
    private long[] conditional(long graph, int type, int value, int bodies) {
        ok(graphs.addCondition(graph, value, 1, out));
        MemorySegment made = Arena.ofAuto().allocate((1L + bodies) * Long.BYTES, Long.BYTES);
        ok(graphs.addConditional(graph, new long[0], out.get(LONG, 0), type, made));
        return made.asSlice(Long.BYTES).toArray(LONG);
    }

    @Test
    void shouldEndALoopWhoseConditionNeverChangesWithTheDevice() throws Exception {
        long memory = allocate();
        long graph = graph();
        node(conditional(graph, CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_WHILE, 1, 1)[0], fill(memory, 5));
        ok(graphs.launch(executable(graph), 0));
        // close() must end the loop, else this test does not end.
    }

    @Test
    void shouldRefuseNodesThatCudaForbidsInBodies() {
        long graph = graph();
        long body = conditional(graph, CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_IF, 1, 2)[1];
        assertEquals(CUresult.CUDA_ERROR_NOT_SUPPORTED, graphs.add(body, new long[0], new GraphNode.Host(1), out));
        assertEquals(CUresult.CUDA_ERROR_NOT_SUPPORTED, graphs.addAlloc(body, new long[0], 0, BYTES, out));
        assertEquals(CUresult.CUDA_ERROR_INVALID_VALUE, graphs.instantiate(body, 0, out));
        assertEquals(CUresult.CUDA_ERROR_INVALID_VALUE, graphs.destroy(body));
        assertEquals(CUresult.CUDA_ERROR_NOT_SUPPORTED,
            graphs.add(graph(), new long[0], new GraphNode.Child(graph), out));
    }

    @Test
    void shouldNameAConditionWithoutANode() {
        long graph = graph();
        ok(graphs.addCondition(graph, 0, 0, out));
        assertEquals(CUresult.CUDA_ERROR_INVALID_VALUE, graphs.instantiate(graph, 0, out));
        assertEquals(5, out.get(ValueLayout.JAVA_INT, 2L * Long.BYTES)); // CONDITIONAL_HANDLE_UNUSED
    }

    @Test
    void shouldFollowDependenciesAgainstTheOrderOfCreation() throws Exception {
        long first = allocate();
        long second = allocate();
        long graph = graph();
        long copy = node(graph, copy(second, first));
        long fill = node(graph, fill(first, 5));
        ok(graphs.addEdges(graph, new long[] {fill}, new long[] {copy}, MemorySegment.NULL));
        assertEquals(CUresult.CUDA_ERROR_INVALID_VALUE,
            graphs.addEdges(graph, new long[] {fill}, new long[] {copy}, MemorySegment.NULL), "once only");
        run(executable(graph));
        assertEquals(5, byteAt(second));
        ok(graphs.addEdges(graph, new long[] {copy}, new long[] {fill}, MemorySegment.NULL));
        assertEquals(CUresult.CUDA_ERROR_INVALID_VALUE, graphs.instantiate(graph, 0, out), "a circle");
        assertEquals(2, out.get(ValueLayout.JAVA_INT, 16), "CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE");
    }

    @Test
    void shouldRunGraphsInsideInTheirPlace() throws Exception {
        long memory = allocate();
        long graph = graph();
        long inner = graph();
        node(inner, new GraphNode.Host(2), node(inner, fill(memory, 3)));
        long before = node(graph, new GraphNode.Host(1));
        long child = node(graph, new GraphNode.Child(inner), before);
        node(graph, new GraphNode.Host(3), child);
        assertEquals(CUresult.CUDA_ERROR_INVALID_VALUE,
            graphs.add(graph, new long[0], new GraphNode.Child(inner), out), "inside of one node only");
        long exec = executable(graph);
        run(exec);
        run(exec);
        assertEquals(List.of(1L, 2L, 3L, 1L, 2L, 3L), calls);
        assertEquals(3, byteAt(memory));
        ok(graphs.destroy(graph));
        run(exec);
        assertEquals(9, calls.size(), "the executable graph stays");
    }

    @Test
    void shouldNotOverlapLaunchesOfOneExecutableGraph() throws Exception {
        CountDownLatch held = new CountDownLatch(1);
        graphs.hostFunctions(id -> {
            calls.add(id);
            try {
                held.await();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            calls.add(-id);
        });
        long graph = graph();
        node(graph, new GraphNode.Host(7));
        long exec = executable(graph);
        ok(backend.driver().cuStreamCreateWithPriority(out, 1, 0));
        long stream = out.get(LONG, 0);
        ok(graphs.launch(exec, 0));
        ok(graphs.launch(exec, stream));
        held.countDown();
        CompletableFuture<Integer> reached = new CompletableFuture<>();
        ok(backend.whenStreamReached(context, stream, reached::complete));
        ok(reached.get(60, TimeUnit.SECONDS));
        assertEquals(List.of(7L, -7L, 7L, -7L), calls);
    }

    @Test
    void shouldKeepAllocatedMemoryInItsPlaceAndCountIt() throws Exception {
        long graph = graph();
        ok(graphs.addAlloc(graph, new long[0], 0, BYTES, out));
        long allocation = out.get(LONG, 0);
        long address = out.get(LONG, 8);
        long fill = node(graph, fill(address, 9), allocation);
        long exec = executable(graph);
        run(exec);
        assertEquals(9, byteAt(address));
        ok(graphs.memoryAttribute(0, 0, out));
        assertEquals(BYTES, out.get(LONG, 0), "used");
        assertEquals(CUresult.CUDA_ERROR_INVALID_VALUE, graphs.launch(exec, 0), "not freed yet");
        ok(backend.driver().cuMemFreeAsync(address, 0));
        assertEquals(CUresult.CUDA_ERROR_INVALID_VALUE, backend.driver().cuMemFreeAsync(address, 0), "freed once");
        run(exec);
        ok(backend.driver().cuMemFree_v2(address));
        node(graph, new GraphNode.Free(address), fill);
        ok(graphs.destroyExec(exec));
        long freeing = executable(graph);
        run(freeing);
        run(freeing);
        ok(graphs.destroyExec(freeing));
        ok(graphs.destroy(graph));
        synchronise();
        ok(graphs.memoryAttribute(0, 2, out));
        assertEquals(0, out.get(LONG, 0), "reserved");
        ok(graphs.memoryAttribute(0, 3, out));
        assertNotEquals(0, out.get(LONG, 0), "reserved at most");
        ok(graphs.setMemoryAttribute(0, 3, 0));
        assertEquals(CUresult.CUDA_ERROR_INVALID_VALUE, graphs.setMemoryAttribute(0, 2, 0));
    }

    private long[] allocation(long graph, long bytes, long... dependencies) {
        ok(graphs.addAlloc(graph, dependencies, 0, bytes, out));
        return new long[] {out.get(LONG, 0), out.get(LONG, 8)};
    }

    /** As NVIDIA's driver 580 behaves on an H200. */
    @Test
    void shouldGiveANodeMemoryThatNodesBeforeItHaveFreed() throws Exception {
        long graph = graph();
        long[] first = allocation(graph, 2 * BYTES);
        long freed = node(graph, new GraphNode.Free(first[1]), node(graph, fill(first[1], 1), first[0]));
        long[] beside = allocation(graph, 2 * BYTES);
        assertNotEquals(first[1], beside[1], "not after the free");
        long[] again = allocation(graph, 2 * BYTES, freed);
        assertEquals(first[1], again[1]);
        long freedAgain = node(graph, new GraphNode.Free(again[1]), again[0]);
        long[] half = allocation(graph, BYTES, freedAgain);
        long[] otherHalf = allocation(graph, BYTES, freedAgain);
        assertEquals(first[1], half[1]);
        assertEquals(first[1] + BYTES, otherHalf[1]);
        assertNotEquals(first[1], allocation(graph, BYTES, freedAgain)[1], "both halves are in use");
        node(graph, fill(otherHalf[1], 5), otherHalf[0]);
        ok(graphs.memoryAttribute(0, 2, out));
        assertEquals(5 * BYTES, out.get(LONG, 0), "reserved");
        long exec = executable(graph);
        run(exec);
        ok(graphs.destroyExec(exec));
        ok(graphs.destroy(graph));
        assertEquals(5, byteAt(otherHalf[1]), "a launch has left it");
        ok(backend.driver().cuMemFree_v2(otherHalf[1]));
        assertEquals(CUresult.CUDA_ERROR_INVALID_VALUE, backend.driver().cuMemFree_v2(otherHalf[1]), "freed once");
        ok(backend.driver().cuMemFree_v2(half[1]));
        synchronise();
        ok(graphs.memoryAttribute(0, 2, out));
        assertEquals(3 * BYTES, out.get(LONG, 0), "adjacent memory is not freed");
    }

    @Test
    void shouldTakeOverParametersOfAGraphOfTheSameForm() throws Exception {
        long memory = allocate();
        long graph = graph();
        long first = node(graph, fill(memory, 1));
        long exec = executable(graph);
        long other = graph();
        node(other, fill(memory, 2));
        ok(graphs.update(exec, other, out));
        run(exec);
        assertEquals(2, byteAt(memory));
        ok(graphs.setInExec(exec, first, fill(memory, 4)));
        run(exec);
        assertEquals(4, byteAt(memory));
        ok(graphs.enable(exec, first, false));
        ok(backend.driver().cuMemsetD8Async(memory, (byte) 6, BYTES, 0));
        run(exec);
        assertEquals(6, byteAt(memory), "passed over");
        node(other, new GraphNode.Empty());
        assertEquals(CUresult.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, graphs.update(exec, other, out));
        assertEquals(GraphExec.TOPOLOGY_CHANGED, out.get(ValueLayout.JAVA_INT, 0));
        long third = graph();
        node(third, new GraphNode.Empty());
        assertEquals(CUresult.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, graphs.update(exec, third, out));
        assertEquals(GraphExec.NODE_TYPE_CHANGED, out.get(ValueLayout.JAVA_INT, 0));
    }

    @Test
    void shouldCopyBoxes() throws Exception {
        long memory = allocate();
        MemorySegment host = Arena.ofAuto().allocate(BYTES, 8);
        for (int i = 0; i < BYTES; i++) {
            host.set(ValueLayout.JAVA_BYTE, i, (byte) (i * 31));
        }
        MemorySegment back = Arena.ofAuto().allocate(BYTES, 8);
        long graph = graph();
        End device = new End(memory + 10, false, 100, 5);
        long to = node(graph, new GraphNode.Copy(device, new End(host.address(), true, 64, 4), 30, 3, 2));
        node(graph, new GraphNode.Copy(new End(back.address(), true, 30, 3), device, 30, 3, 2), to);
        run(executable(graph));
        for (int slice = 0; slice < 2; slice++) {
            for (int row = 0; row < 3; row++) {
                for (int x = 0; x < 30; x++) {
                    assertEquals(host.get(ValueLayout.JAVA_BYTE, slice * 256L + row * 64L + x),
                        back.get(ValueLayout.JAVA_BYTE, slice * 90L + row * 30L + x));
                }
            }
        }
    }

    @Test
    void shouldCopyThroughArraysWithinTheirBounds() throws Exception {
        MemorySegment descriptor = Arena.ofAuto().allocate(CUDA_ARRAY3D_DESCRIPTOR.BYTES, 8);
        descriptor.set(LONG, CUDA_ARRAY3D_DESCRIPTOR.WIDTH_OFFSET, 16);
        descriptor.set(LONG, CUDA_ARRAY3D_DESCRIPTOR.HEIGHT_OFFSET, 8);
        descriptor.set(ValueLayout.JAVA_INT, CUDA_ARRAY3D_DESCRIPTOR.FORMAT_OFFSET, 1); // CU_AD_FORMAT_UNSIGNED_INT8
        descriptor.set(ValueLayout.JAVA_INT, CUDA_ARRAY3D_DESCRIPTOR.NUM_CHANNELS_OFFSET, 1);
        ok(backend.driver().cuArray3DCreate_v2(out, descriptor));
        End inside = new End(GraphNode.Place.ARRAY, out.get(LONG, 0), 0, 0, 4, 2, 0);
        long from = allocate();
        long to = allocate();
        long graph = graph();
        long fill = node(graph, fill(from, 8));
        long in = node(graph, new GraphNode.Copy(inside, new End(from, false, 12, 6), 12, 6, 1), fill);
        node(graph, new GraphNode.Copy(new End(to, false, 12, 6), inside, 12, 6, 1), in);
        run(executable(graph));
        assertEquals(8, byteAt(to + 71));
        assertEquals(CUresult.CUDA_ERROR_INVALID_VALUE, graphs.add(graph, new long[0],
            new GraphNode.Copy(inside, new End(from, false, 13, 6), 13, 6, 1), out), "a byte beyond a row");
    }
}
