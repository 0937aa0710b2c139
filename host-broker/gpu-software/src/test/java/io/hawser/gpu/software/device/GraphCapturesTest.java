package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
import static io.hawser.cuda.generated.CUresult.CUDA_ERROR_ILLEGAL_STATE;
import static io.hawser.cuda.generated.CUresult.CUDA_ERROR_INVALID_VALUE;
import static io.hawser.cuda.generated.CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
import static io.hawser.cuda.generated.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.cuda.backend.GraphBackend;
import io.hawser.cuda.backend.GraphNode;
import io.hawser.cuda.generated.CUresult;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Captures of what libraries do in a stream. */
@Timeout(300)
class GraphCapturesTest {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;

    private final SoftwareBackend backend = new SoftwareBackend(64 << 20, 4);
    private final GraphBackend graphs = backend.graphs();
    private final MemorySegment out = Arena.ofAuto().allocate(64, 8);
    private final List<String> done = new CopyOnWriteArrayList<>();
    private long context;
    private long stream;

    @BeforeEach
    void makeStream() {
        ok(backend.createContext(0, 0, true, out));
        context = out.get(LONG, 0);
        ok(backend.setCurrent(context));
        ok(backend.driver().cuStreamCreateWithPriority(out, 1, 0));
        stream = out.get(LONG, 0);
    }

    @AfterEach
    void close() {
        backend.close();
    }

    private static void ok(int result) {
        assertEquals(CUresult.CUDA_SUCCESS, result);
    }

    private void issue(String name) {
        ok(backend.hostFunction(stream, () -> done.add(name)));
    }

    /** A captured graph of functions with these names. */
    private long captured(String... names) {
        ok(graphs.beginCapture(stream));
        List.of(names).forEach(this::issue);
        ok(graphs.endCapture(stream, out, false));
        assertEquals(names.length, out.getAtIndex(LONG, 1));
        return out.get(LONG, 0);
    }

    /** A graph that contains another one. */
    private long around(long inner) {
        ok(graphs.create(out));
        long graph = out.get(LONG, 0);
        ok(graphs.add(graph, new long[0], new GraphNode.Child(inner), out));
        return graph;
    }

    private long executable(long graph) {
        ok(graphs.instantiate(graph, 0, out));
        return out.get(LONG, 0);
    }

    private void run(long exec) throws Exception {
        ok(graphs.launch(exec, 0));
        CompletableFuture<Integer> reached = new CompletableFuture<>();
        ok(backend.whenStreamReached(context, 0, reached::complete));
        ok(reached.get(60, TimeUnit.SECONDS));
    }

    @Test
    void shouldRunFunctionsAtEachLaunchAndNotAtTheCapture() throws Exception {
        long exec = executable(around(captured("a", "b")));
        assertEquals(List.of(), done);
        run(exec);
        run(exec);
        assertEquals(List.of("a", "b", "a", "b"), done);
        issue("now");
        ok(backend.driver().cuStreamQuery(stream) == CUresult.CUDA_ERROR_NOT_READY ? 0
            : backend.driver().cuStreamQuery(stream));
    }

    @Test
    void shouldCopyGraphThatEndsBeforeItsCopy() throws Exception {
        long inner = captured("a");
        long outer = around(inner);
        ok(graphs.copy(inner, out));
        long copy = out.get(LONG, 0);
        ok(graphs.destroy(outer));
        run(executable(around(copy)));
        assertEquals(List.of("a"), done);
        ok(graphs.create(out));
        long plain = out.get(LONG, 0);
        ok(graphs.add(plain, new long[0], new GraphNode.Empty(), out));
        assertEquals(CUDA_ERROR_INVALID_VALUE, graphs.copy(plain, out));
    }

    @Test
    void shouldUpdateByAsManyFunctionsOnly() throws Exception {
        long exec = executable(around(captured("a", "b")));
        ok(graphs.update(exec, around(captured("c", "d")), out));
        run(exec);
        assertEquals(List.of("c", "d"), done);
        assertEquals(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, graphs.update(exec, around(captured("e")), out));
        ok(graphs.create(out));
        long plain = out.get(LONG, 0);
        ok(graphs.add(plain, new long[0], new GraphNode.Empty(), out));
        ok(graphs.add(plain, new long[] {out.get(LONG, 0)}, new GraphNode.Empty(), out));
        assertEquals(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, graphs.update(exec, around(plain), out));
        run(exec);
        assertEquals(List.of("c", "d", "c", "d"), done);
    }

    @Test
    void shouldEndCaptureAtACallThatWaits() {
        ok(graphs.beginCapture(stream));
        assertEquals(CUDA_ERROR_ILLEGAL_STATE, graphs.beginCapture(stream));
        issue("a");
        assertEquals(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, backend.driver().cuStreamQuery(stream));
        assertEquals(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, backend.hostFunction(stream, () -> done.add("b")));
        assertEquals(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, graphs.endCapture(stream, out, false));
        assertEquals(CUDA_ERROR_ILLEGAL_STATE, graphs.endCapture(stream, out, false));
        assertEquals(List.of(), done);
    }
}
