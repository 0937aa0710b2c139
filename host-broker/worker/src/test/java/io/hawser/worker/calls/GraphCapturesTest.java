package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CUgraphNodeType;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.HwsGraphNode;
import io.hawser.cuda.generated.cublas.CublasOpcodes;
import io.hawser.cuda.generated.cublas.cublasStatus_t;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.HeapMath;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Calls of libraries that become graphs: results, checks, and what a guest can do with such a graph. */
@Timeout(300)
class GraphCapturesTest {
    private static final int N = 16;
    private static final int BYTES = N * N * Float.BYTES;
    private static final long QUOTA_BYTES = 64 << 20;
    private static final int INVALID_VALUE = 1;
    private static final int INVALIDATED = 1;
    private static final int USES_MEMORY = 2;

    /** The calls of a test in a session with a handle of cuBLAS and a matrix. */
    @FunctionalInterface
    private interface Story {
        void run(Rig rig, long handle, long matrix) throws IOException;
    }

    private static void session(Story story) throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, QUOTA_BYTES)) {
            Guest guest = rig.guest();
            long matrix = guest.allocate(BYTES);
            long handle = guest.newId(HandleKind.CUBLAS);
            assertEquals(0, guest.call(CublasOpcodes.cublasCreate_v2, handle).status());
            story.run(rig, handle, matrix);
            guest.close();
            rig.expect("ended");
            assertTrue(rig.join());
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    /** A call that ends the session. */
    private static void refuse(String reason, Story attack) throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            long matrix = rig.guest().allocate(BYTES);
            long handle = rig.guest().newId(HandleKind.CUBLAS);
            assertEquals(0, rig.guest().call(CublasOpcodes.cublasCreate_v2, handle).status());
            attack.run(rig, handle, matrix);
            assertTrue(rig.guest().reasonOfLoss().contains(reason));
        }
    }

    /** A product of square matrices: HwsCublasHandle, 5 numbers, alpha, A, lda, B, ldb, beta, C, ldc. */
    private static Consumer<RecordWriter> product(long handle, long matrix, long result, int scalarBytes) {
        return out -> {
            out.fixed(192);
            out.i64(0, handle);
            out.i64(8, 0x77); // the stream: a captured call sees another
            Arrays.stream(new int[] {64, 68, 72}).forEach(at -> out.i32(at, N));
            Arrays.stream(new int[] {84, 148}).forEach(at -> out.i32(at, scalarBytes));
            Arrays.stream(new int[] {96, 160}).forEach(at -> out.f32(at, 2.5f));
            out.i64(112, matrix);
            out.i32(120, N);
            out.i64(128, matrix);
            out.i32(136, N);
            out.i64(176, result);
            out.i32(184, N);
        };
    }

    /** A scalar product with its result in the reply. */
    private static Consumer<RecordWriter> dot(long handle, long vector) {
        return out -> {
            out.fixed(128);
            out.i64(0, handle);
            out.i32(56, N);
            out.i64(64, vector);
            out.i32(72, 1);
            out.i64(80, vector);
            out.i32(88, 1);
            out.i32(100, Float.BYTES);
        };
    }

    static long sendCapture(Guest guest, long graph, int opcode, Consumer<RecordWriter> payload)
        throws IOException {
        RecordWriter record = new RecordWriter(1024);
        record.begin(opcode, 0, 0, 0, 0);
        payload.accept(record);
        int bytes = record.end();
        MemorySegment body = record.memory().asSlice(RecordLayout.HEADER_BYTES, bytes - RecordLayout.HEADER_BYTES);
        return guest.send(CudaOpcodes.hwsGraphCapture, Guest.REPLY, out -> {
            out.fixed(24);
            out.i64(0, graph);
            out.i32(8, opcode);
            out.i32(12, 32); // bytes of a result
            out.i32(16, (int) body.byteSize());
            out.buffer(20, body);
        });
    }

    static Guest.Received capture(Guest guest, long graph, int opcode, Consumer<RecordWriter> payload)
        throws IOException {
        return guest.replyTo(sendCapture(guest, graph, opcode, payload));
    }

    /** Captures a product; returns the graph's id. */
    private static long captured(Guest guest, long handle, long matrix) throws IOException {
        long graph = guest.newId(HandleKind.GRAPH);
        Guest.Received reply = capture(guest, graph, CublasOpcodes.cublasSgemm_v2,
            product(handle, matrix, matrix, Float.BYTES));
        assertEquals(0, reply.status());
        assertEquals(0, reply.i32(0));
        assertEquals(1, reply.i32(4));
        return graph;
    }

    /** A graph with one node that contains another graph. */
    static long around(Guest guest, long inner) throws IOException {
        long graph = guest.newId(HandleKind.GRAPH);
        guest.send(CudaOpcodes.hwsGraphCreate, 0, graph, 0);
        ByteBuffer node = ByteBuffer.allocate(HwsGraphNode.BYTES + Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        node.putInt(0).putInt(CUgraphNodeType.CU_GRAPH_NODE_TYPE_GRAPH).putInt(0).putInt(Long.BYTES).putLong(0);
        node.putLong(inner);
        guest.send(CudaOpcodes.hwsGraphAddNodes, 0, out -> {
            out.fixed(24);
            out.i64(0, graph);
            out.i32(8, 1);
            out.i32(12, node.capacity());
            out.buffer(16, MemorySegment.ofArray(node.array()));
        });
        return graph;
    }

    static int instantiate(Guest guest, long exec, long graph) throws IOException {
        Guest.Received reply = guest.call(CudaOpcodes.hwsGraphInstantiate, exec, graph, 0);
        return reply.status() != 0 ? reply.status() : reply.i32(0);
    }

    @Test
    void shouldCaptureCallAndLaunchItInsideAnotherGraph() throws IOException {
        session((rig, handle, matrix) -> {
            Guest guest = rig.guest();
            long inner = captured(guest, handle, matrix);
            assertTrue(HeapMath.of(rig.gpu()).isCaptured());
            assertEquals(2.5f, HeapMath.of(rig.gpu()).alpha());
            long exec = guest.newId(HandleKind.GRAPH_EXEC);
            assertEquals(0, instantiate(guest, exec, around(guest, inner)));
            guest.send(CudaOpcodes.cuGraphLaunch, Guest.CREDITED, exec, 0);
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
        });
    }

    /** A graph that nothing contains must not outlive the session either. */
    @Test
    void shouldCopyCapturedGraphAlsoFromInsideANode() throws IOException {
        session((rig, handle, matrix) -> {
            Guest guest = rig.guest();
            long inner = captured(guest, handle, matrix);
            long outer = around(guest, inner);
            long copy = guest.newId(HandleKind.GRAPH);
            guest.send(CudaOpcodes.hwsGraphCopy, 0, copy, inner);
            guest.send(CudaOpcodes.hwsGraphDestroy, 0, outer);
            guest.send(CudaOpcodes.hwsGraphDestroy, 0, inner);
            assertEquals(0, instantiate(guest, guest.newId(HandleKind.GRAPH_EXEC), around(guest, copy)));
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
        });
    }

    @Test
    void shouldReturnTheLibrarysResultWithoutAGraph() throws IOException {
        session((rig, handle, matrix) -> {
            Guest guest = rig.guest();
            HeapMath.of(rig.gpu()).fail(cublasStatus_t.CUBLAS_STATUS_ARCH_MISMATCH);
            long graph = guest.newId(HandleKind.GRAPH);
            Guest.Received reply = capture(guest, graph, CublasOpcodes.cublasSgemm_v2,
                product(handle, matrix, matrix, Float.BYTES));
            assertEquals(0, reply.status());
            assertEquals(cublasStatus_t.CUBLAS_STATUS_ARCH_MISMATCH, reply.i32(0));
            assertEquals(0, reply.i32(4));
            assertEquals(0, reply.i32(8));
            HeapMath.of(rig.gpu()).fail(0);
            assertEquals(graph, captureAs(guest, graph, handle, matrix)); // the id is still free
        });
    }

    private static long captureAs(Guest guest, long graph, long handle, long matrix) throws IOException {
        assertEquals(1, capture(guest, graph, CublasOpcodes.cublasSgemm_v2,
            product(handle, matrix, matrix, Float.BYTES)).i32(4));
        return graph;
    }

    @Test
    void shouldTellWhenTheLibraryHasEndedTheCapture() throws IOException {
        session((rig, handle, matrix) -> {
            Guest.Received reply = capture(rig.guest(), rig.guest().newId(HandleKind.GRAPH),
                CublasOpcodes.cublasSdot_v2, dot(handle, matrix));
            assertEquals(0, reply.status());
            assertEquals(0, reply.i32(4));
            assertEquals(INVALIDATED, reply.i32(8));
        });
    }

    @Test
    void shouldCountMemoryThatNodesAllocateAndMakeNoCopies() throws IOException {
        session((rig, handle, matrix) -> {
            Guest guest = rig.guest();
            rig.gpu().graphs().allocateInCaptures(1 << 20);
            long free = guest.call(Guest.MEM_GET_INFO).i64(0);
            long graph = guest.newId(HandleKind.GRAPH);
            assertEquals(USES_MEMORY, capture(guest, graph, CublasOpcodes.cublasSgemm_v2,
                product(handle, matrix, matrix, Float.BYTES)).i32(8));
            assertEquals(1 << 20, free - guest.call(Guest.MEM_GET_INFO).i64(0));
            long copy = guest.newId(HandleKind.GRAPH);
            guest.send(CudaOpcodes.hwsGraphCopy, 0, copy, graph);
            assertEquals(INVALID_VALUE, guest.call(Guest.CTX_SYNCHRONIZE).status());
            guest.send(CudaOpcodes.hwsGraphDestroy, 0, graph);
            assertEquals(free, guest.call(Guest.MEM_GET_INFO).i64(0));
            rig.gpu().graphs().allocateInCaptures(1L << 60);
            Guest.Received reply = capture(guest, guest.newId(HandleKind.GRAPH), CublasOpcodes.cublasSgemm_v2,
                product(handle, matrix, matrix, Float.BYTES));
            assertEquals(2, reply.status()); // CUDA_ERROR_OUT_OF_MEMORY
        });
    }

    @Test
    void shouldRefuseAddressesOutsideTheSessionsMemory() throws IOException {
        session((rig, handle, matrix) -> {
            for (long result : new long[] {matrix + Float.BYTES, matrix - Float.BYTES, 0, -1, Long.MIN_VALUE}) {
                Guest.Received reply = capture(rig.guest(), rig.guest().newId(HandleKind.GRAPH),
                    CublasOpcodes.cublasSgemm_v2, product(handle, matrix, result, Float.BYTES));
                assertEquals(cublasStatus_t.CUBLAS_STATUS_INVALID_VALUE, reply.i32(0), "result=" + result);
                assertEquals(0, reply.i32(4));
            }
            assertFalse(HeapMath.of(rig.gpu()).isCaptured());
        });
    }

    /** Its memory may belong to another allocation when the graph is launched. */
    @Test
    void shouldRefuseLaunchAfterItsMemoryWasFreed() throws IOException {
        session((rig, handle, matrix) -> {
            Guest guest = rig.guest();
            long other = guest.allocate(BYTES);
            long exec = guest.newId(HandleKind.GRAPH_EXEC);
            assertEquals(0, instantiate(guest, exec, around(guest, captured(guest, handle, other))));
            guest.send(CudaOpcodes.cuGraphLaunch, Guest.CREDITED, exec, 0);
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
            guest.call(Guest.MEM_FREE, other);
            guest.send(CudaOpcodes.cuGraphLaunch, Guest.CREDITED, exec, 0);
            assertEquals(INVALID_VALUE, guest.call(Guest.CTX_SYNCHRONIZE).status());
        });
    }

    /** Otherwise a launch would not know the memory of its nodes. */
    @Test
    void shouldNotExecuteOrChangeCapturedGraphByItself() throws IOException {
        session((rig, handle, matrix) -> {
            Guest guest = rig.guest();
            long inner = captured(guest, handle, matrix);
            assertEquals(INVALID_VALUE, instantiate(guest, guest.newId(HandleKind.GRAPH_EXEC), inner));
            long plain = guest.newId(HandleKind.GRAPH);
            guest.send(CudaOpcodes.hwsGraphCreate, 0, plain, 0);
            long copy = guest.newId(HandleKind.GRAPH);
            guest.send(CudaOpcodes.hwsGraphCopy, 0, copy, plain);
            assertEquals(INVALID_VALUE, guest.call(Guest.CTX_SYNCHRONIZE).status());
        });
    }

    @Test
    void shouldEndSessionForCaptureOfAnotherFunction() throws IOException {
        int[] opcodes = {CublasOpcodes.cublasCreate_v2, CudaOpcodes.hwsGraphCapture, CudaOpcodes.cuCtxSynchronize,
            CudaOpcodes.hwsLaunch, 0, -1};
        for (int opcode : opcodes) {
            refuse("captured", (rig, handle, matrix) -> sendCapture(rig.guest(),
                rig.guest().newId(HandleKind.GRAPH), opcode, out -> out.fixed(64)));
        }
    }

    @Test
    void shouldEndSessionForNumberOfImpossibleSize() throws IOException {
        refuse("number", (rig, handle, matrix) -> sendCapture(rig.guest(), rig.guest().newId(HandleKind.GRAPH),
            CublasOpcodes.cublasSgemm_v2, product(handle, matrix, matrix, 17)));
    }

    @Test
    void shouldEndSessionForRecordOfAnotherLength() throws IOException {
        for (int length : new int[] {0, 8, 184, 200}) {
            refuse("", (rig, handle, matrix) -> sendCapture(rig.guest(), rig.guest().newId(HandleKind.GRAPH),
                CublasOpcodes.cublasSgemm_v2, out -> out.fixed(length)));
        }
    }

    @Test
    void shouldEndSessionForIdThatIsInUse() throws IOException {
        refuse("id", (rig, handle, matrix) -> {
            long graph = captured(rig.guest(), handle, matrix);
            sendCapture(rig.guest(), graph, CublasOpcodes.cublasSgemm_v2,
                product(handle, matrix, matrix, Float.BYTES));
        });
    }
}
