package io.hawser.worker.calls;

import static io.hawser.cuda.generated.cudnn.cudnnStatus_t.CUDNN_STATUS_BAD_PARAM;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.backend.CudnnBackend.Content;
import io.hawser.cuda.backend.CudnnBackend.Kind;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cudnn.CudnnOpcodes;
import io.hawser.cuda.generated.cudnn.HwsDnnCtcLoss;
import io.hawser.cuda.generated.cudnn.HwsDnnHandle;
import io.hawser.cuda.generated.cudnn.cudnnBackendAttributeName_t;
import io.hawser.cuda.generated.cudnn.cudnnBackendAttributeType_t;
import io.hawser.cuda.generated.cudnn.cudnnBackendDescriptorType_t;
import io.hawser.cuda.generated.cudnn.cudnnConvolutionFwdAlgoPerf_t;
import io.hawser.cuda.generated.cudnn.cudnnDataType_t;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.HeapCudnn;
import io.hawser.worker.fixture.HeapMath;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class CudnnCallsTest {
    private static final int INT64 = cudnnBackendAttributeType_t.CUDNN_TYPE_INT64;
    private static final int HANDLE = cudnnBackendAttributeType_t.CUDNN_TYPE_HANDLE;
    private static final int DESCRIPTOR = cudnnBackendAttributeType_t.CUDNN_TYPE_BACKEND_DESCRIPTOR;
    private static final int TENSOR = cudnnBackendDescriptorType_t.CUDNN_BACKEND_TENSOR_DESCRIPTOR;
    private static final int GRAPH = cudnnBackendDescriptorType_t.CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR;
    private static final int PLAN = cudnnBackendDescriptorType_t.CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
    private static final int SIDE = 16;
    private static final long BYTES = SIDE * SIDE * Float.BYTES;
    private static final long VALUE_UID = 7;
    private static final long MEMORY_UID = 8;

    /** A content that a test fills. */
    private static final class Writer {
        private final MemorySegment bytes = Arena.ofAuto().allocate(65536, 8);
        private long used;

        Writer add(int name, int type, long count, long... values) {
            bytes.set(ValueLayout.JAVA_INT, used, name);
            bytes.set(ValueLayout.JAVA_INT, used + 4, type);
            bytes.set(ValueLayout.JAVA_LONG, used + 8, count);
            used += CudnnContent.HEAD_BYTES;
            int size = CudnnContent.typeBytes(type);
            for (int i = 0; i < values.length; i++) {
                if (size == Long.BYTES) {
                    bytes.set(ValueLayout.JAVA_LONG, used + (long) i * size, values[i]);
                } else if (size == Integer.BYTES) {
                    bytes.set(ValueLayout.JAVA_INT, used + (long) i * size, (int) values[i]);
                } else {
                    bytes.set(ValueLayout.JAVA_BYTE, used + i, (byte) values[i]);
                }
            }
            used += (values.length * (long) Math.max(1, size) + 7) / 8 * 8;
            return this;
        }

        MemorySegment content() {
            return bytes.asSlice(0, used);
        }
    }

    private static int make(Guest guest, long id, int kind, MemorySegment content) throws IOException {
        return guest.replyTo(send(guest, id, kind, content)).status();
    }

    private static long send(Guest guest, long id, int kind, MemorySegment content) throws IOException {
        return guest.send(CudnnOpcodes.hwsDnnMake, Guest.REPLY, out -> {
            out.fixed(24);
            out.i64(0, id);
            out.i32(8, kind);
            out.i32(12, (int) content.byteSize());
            out.buffer(16, content);
        });
    }

    private static Writer tensor(long uid, boolean isByValue) {
        return new Writer()
            .add(cudnnBackendAttributeName_t.CUDNN_ATTR_TENSOR_DATA_TYPE,
                cudnnBackendAttributeType_t.CUDNN_TYPE_DATA_TYPE, 1, cudnnDataType_t.CUDNN_DATA_FLOAT)
            .add(cudnnBackendAttributeName_t.CUDNN_ATTR_TENSOR_DIMENSIONS, INT64, 2, SIDE, SIDE)
            .add(cudnnBackendAttributeName_t.CUDNN_ATTR_TENSOR_STRIDES, INT64, 2, SIDE, 1)
            .add(cudnnBackendAttributeName_t.CUDNN_ATTR_TENSOR_UNIQUE_ID, INT64, 1, uid)
            .add(cudnnBackendAttributeName_t.CUDNN_ATTR_TENSOR_IS_BY_VALUE,
                cudnnBackendAttributeType_t.CUDNN_TYPE_BOOLEAN, 1, isByValue ? 1 : 0);
    }

    /** Makes a handle and a plan with one tensor in memory and one by value; the plan has id 4. */
    private static long plan(Guest guest) throws IOException {
        long handle = guest.newId(HandleKind.CUDNN);
        assertEquals(0, guest.call(CudnnOpcodes.cudnnCreate, handle).status());
        assertEquals(0, make(guest, 1, TENSOR, tensor(VALUE_UID, true).content()));
        assertEquals(0, make(guest, 2, TENSOR, tensor(MEMORY_UID, false).content()));
        assertEquals(0, make(guest, 3, GRAPH, new Writer().add(800, HANDLE, 1, handle)
            .add(801, DESCRIPTOR, 2, 1, 2).content()));
        assertEquals(0, make(guest, 4, PLAN, new Writer().add(400, HANDLE, 1, handle)
            .add(401, DESCRIPTOR, 1, 3).content()));
        return handle;
    }

    private static long execute(Guest guest, long handle, long plan, long workspace, long... bindings)
        throws IOException {
        MemorySegment bytes = Arena.ofAuto().allocateFrom(ValueLayout.JAVA_LONG, bindings);
        return guest.send(CudnnOpcodes.hwsDnnExecute, Guest.REPLY | Guest.CREDITED, out -> {
            out.fixed(40);
            out.i64(0, handle);
            out.i64(16, plan);
            out.i64(24, workspace);
            out.i32(32, (int) bytes.byteSize());
            out.buffer(36, bytes);
        });
    }

    @Test
    void shouldPassNumbersByValueAndCheckMemory() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(BYTES);
            long workspace = guest.allocate(HeapCudnn.WORKSPACE_BYTES);
            assertNull(HeapMath.dnnOf(rig.gpu()));
            long handle = plan(guest);
            HeapCudnn library = HeapMath.dnnOf(rig.gpu());
            assertEquals(0, guest.replyTo(execute(guest, handle, 4, workspace, MEMORY_UID, 0, memory, 0, VALUE_UID,
                Float.BYTES, memory, 0)).status());
            assertEquals(1, library.executions());
            assertNotEquals(memory, library.pointer(), "a number by value must not be an address of the guest");
            for (long address : new long[] {memory + Float.BYTES, memory - Float.BYTES, -1, 1, Long.MIN_VALUE}) {
                assertEquals(CUDNN_STATUS_BAD_PARAM, guest.replyTo(execute(guest, handle, 4, workspace, MEMORY_UID, 0,
                    address, 0)).status(), "address=" + address);
                assertEquals(CUDNN_STATUS_BAD_PARAM, guest.replyTo(execute(guest, handle, 4, address, MEMORY_UID, 0,
                    memory, 0)).status(), "workspace=" + address);
            }
            assertEquals(1, library.executions());
        }
    }

    @Test
    void shouldEndSessionForNumbersOfOtherSizes() throws IOException {
        long[][] wrong = {{VALUE_UID, 0, 0, 0}, {VALUE_UID, 8, 0, 0}, {VALUE_UID, -1, 0, 0}, {MEMORY_UID, 4, 0, 0},
            {99, 4, 0, 0}, {VALUE_UID, 4, 0}};
        for (long[] bindings : wrong) {
            try (Rig rig = Rig.withGuest(Carrier.TCP)) {
                long handle = plan(rig.guest());
                execute(rig.guest(), handle, 4, rig.guest().allocate(HeapCudnn.WORKSPACE_BYTES), bindings);
                assertTrue(rig.guest().reasonOfLoss().length() > 0);
                assertEquals(0, HeapMath.dnnOf(rig.gpu()).executions());
            }
        }
    }

    @Test
    void shouldEndSessionForHostileContents() throws IOException {
        int pointer = cudnnBackendAttributeType_t.CUDNN_TYPE_VOID_PTR;
        int pack = cudnnBackendDescriptorType_t.CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;
        int doubles = cudnnBackendAttributeType_t.CUDNN_TYPE_DOUBLE;
        List<Object[]> wrong = List.of(
            new Object[] {1L, TENSOR, tensor(1, false).content()}, // an id in use
            new Object[] {0L, TENSOR, tensor(1, false).content()},
            new Object[] {-1L, TENSOR, tensor(1, false).content()},
            new Object[] {9L, -1, tensor(1, false).content()},
            new Object[] {9L, pack, tensor(1, false).content()},
            new Object[] {9L, 999, tensor(1, false).content()},
            new Object[] {9L, TENSOR, new Writer().add(902, INT64, -1, 1).content()},
            new Object[] {9L, TENSOR, new Writer().add(902, INT64, 2, 1).content()},
            new Object[] {9L, TENSOR, new Writer().add(902, INT64, Long.MAX_VALUE, 1).content()},
            new Object[] {9L, TENSOR, new Writer().add(902, 99, 1, 1).content()},
            new Object[] {9L, TENSOR, new Writer().add(902, pointer, 1, 1).content()},
            new Object[] {9L, GRAPH, new Writer().add(801, DESCRIPTOR, 1, 77).content()},
            new Object[] {9L, GRAPH, new Writer().add(801, DESCRIPTOR, 1, 9).content()},
            new Object[] {9L, Kind.FIRST, new Writer().add(1, INT64, 2, 0, 99).add(2, doubles, 0).content()},
            new Object[] {9L, Kind.FIRST, new Writer().add(1, INT64, 1, 0).add(2, doubles, 0).content()},
            new Object[] {9L, Kind.FIRST, new Writer().add(1, doubles, 1, 0).add(2, doubles, 0).content()},
            new Object[] {9L, Kind.FIRST + 6, new Writer().add(1, INT64, 1, 0).add(2, doubles, 0)
                .add(3, DESCRIPTOR, 1, 1).content()});
        for (Object[] content : wrong) {
            try (Rig rig = Rig.withGuest(Carrier.TCP)) {
                plan(rig.guest());
                send(rig.guest(), (long) content[0], (int) content[1], (MemorySegment) content[2]);
                assertTrue(rig.guest().reasonOfLoss().length() > 0);
            }
        }
    }

    @Test
    void shouldKeepPartsAsLongAsOthersNeedThem() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            plan(guest);
            HeapCudnn library = HeapMath.dnnOf(rig.gpu());
            assertEquals(5, library.objects());
            for (long id = 1; id < 4; id++) {
                guest.send(CudnnOpcodes.hwsDnnDrop, 0, id);
            }
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
            assertEquals(5, library.objects());
            guest.send(CudnnOpcodes.hwsDnnDrop, 0, 4L);
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
            assertEquals(1, library.objects());
        }
    }

    /** A pooling of a tensor into itself. */
    private static long pool(Guest guest, long handle, long pooling, long tensor, long x) throws IOException {
        return guest.send(CudnnOpcodes.cudnnPoolingForward, Guest.REPLY | Guest.CREDITED, out -> {
            out.fixed(144);
            out.i64(0, handle);
            out.i64(16, pooling);
            out.i32(36, Float.BYTES);
            out.i64(64, tensor);
            out.i64(80, x);
            out.i32(92, Float.BYTES);
            out.i64(120, tensor);
            out.i64(136, x);
        });
    }

    private static long older(Guest guest) throws IOException {
        long handle = guest.newId(HandleKind.CUDNN);
        int doubles = cudnnBackendAttributeType_t.CUDNN_TYPE_DOUBLE;
        assertEquals(0, guest.call(CudnnOpcodes.cudnnCreate, handle).status());
        assertEquals(0, make(guest, 1, Kind.FIRST, new Writer()
            .add(1, INT64, 8, 0, 3, 1, SIDE, SIDE, SIDE * SIDE, SIDE, 1).add(2, doubles, 0).content()));
        assertEquals(0, make(guest, 2, Kind.FIRST + Kind.POOLING.ordinal(), new Writer()
            .add(1, INT64, 9, 0, 0, 2, 1, 1, 0, 0, 1, 1).add(2, doubles, 0).content()));
        return handle;
    }

    @Test
    void shouldCheckMemoryByOlderDescriptors() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(BYTES);
            long handle = older(guest);
            assertEquals(0, guest.replyTo(pool(guest, handle, 2, 1, memory)).status());
            for (long address : new long[] {memory + Float.BYTES, memory - Float.BYTES, -1, Long.MIN_VALUE}) {
                assertEquals(CUDNN_STATUS_BAD_PARAM, guest.replyTo(pool(guest, handle, 2, 1, address)).status());
            }
            assertEquals(1, HeapMath.dnnOf(rig.gpu()).poolings());
        }
    }

    /** A search for a convolution of a tensor with a filter, into the tensor: x, w, y and the workspace. */
    private static long search(Guest guest, long handle, int requested, long... addresses) throws IOException {
        return guest.send(CudnnOpcodes.cudnnFindConvolutionForwardAlgorithmEx, Guest.REPLY | Guest.CREDITED, out -> {
            out.fixed(128);
            out.i64(0, handle);
            out.i64(16, 1);
            out.i64(32, addresses[0]);
            out.i64(40, 3);
            out.i64(56, addresses[1]);
            out.i64(64, 4);
            out.i64(80, 1);
            out.i64(96, addresses[2]);
            out.i32(104, requested);
            out.i64(112, addresses[3]);
            out.i64(120, SIDE);
        });
    }

    @Test
    void shouldCheckTheMemoryOfSearches() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(BYTES);
            long handle = older(guest);
            int doubles = cudnnBackendAttributeType_t.CUDNN_TYPE_DOUBLE;
            assertEquals(0, make(guest, 3, Kind.FIRST + Kind.FILTER.ordinal(), new Writer()
                .add(1, INT64, 7, 0, 0, 4, 1, 1, 1, 1).add(2, doubles, 0).content()));
            assertEquals(0, make(guest, 4, Kind.FIRST + Kind.CONVOLUTION.ordinal(), new Writer()
                .add(1, INT64, 12, 2, 0, 0, 1, 1, 1, 1, 0, 0, 1, 0, 0).add(2, doubles, 0).content()));
            long[] ends = {memory, memory + BYTES - Float.BYTES, memory, memory + BYTES - SIDE};
            Guest.Received reply = guest.replyTo(search(guest, handle, 2, ends));
            assertEquals(0, reply.status());
            byte[] results = reply.buffer(8, 4);
            assertEquals(HeapCudnn.FOUND, reply.i32(0));
            assertEquals(2 * cudnnConvolutionFwdAlgoPerf_t.BYTES, results.length);
            assertEquals(HeapCudnn.ALGORITHM, results[0]);
            for (int i = 0; i < ends.length; i++) {
                for (long wrong : new long[] {ends[i] + 1, memory - 1, 0, -1, Long.MIN_VALUE}) {
                    long[] addresses = ends.clone();
                    addresses[i] = wrong;
                    boolean isAbsent = i == 3 && wrong == 0; // the workspace may be missing
                    assertEquals(isAbsent ? 0 : CUDNN_STATUS_BAD_PARAM, guest.replyTo(search(guest, handle, 2,
                        addresses)).status(), "address " + i + ": " + wrong);
                }
            }
            assertEquals(2, HeapMath.dnnOf(rig.gpu()).searches());
            search(guest, handle, 101, ends);
            assertTrue(guest.reasonOfLoss().contains("limit"));
        }
    }

    @Test
    void shouldEndSessionForOlderDescriptorsOfAnotherKind() throws IOException {
        long[][] wrong = {{1, 1}, {2, 2}, {99, 1}, {2, 99}, {2, -1}};
        for (long[] ids : wrong) {
            try (Rig rig = Rig.withGuest(Carrier.TCP)) {
                long memory = rig.guest().allocate(BYTES);
                pool(rig.guest(), older(rig.guest()), ids[0], ids[1], memory);
                assertTrue(rig.guest().reasonOfLoss().contains("descriptor must have been made"));
                assertEquals(0, HeapMath.dnnOf(rig.gpu()).poolings());
            }
        }
    }

    private static final int TIMES = 4;
    private static final int SEQUENCES = 2;
    private static final int LETTERS = 8;
    private static final long PROBS_BYTES = TIMES * SEQUENCES * LETTERS * Float.BYTES;

    /** A CTC loss over two sequences with labels in host memory, which a test changes. */
    private static final class Loss {
        private final long handle;
        private final long memory;
        private long probsDesc = 1;
        private long gradientsDesc = 1;
        private long ctc = 2;
        private long probs;
        private long costs;
        private long gradients;
        private long workspace;
        private long batch = SEQUENCES;
        private long labelCount = 3;
        private int[] labels = {1, 2, 3};
        private int[] labelLengths = {2, 1};
        private int[] inputLengths = {TIMES, TIMES};

        Loss(Guest guest) throws IOException {
            handle = guest.newId(HandleKind.CUDNN);
            int doubles = cudnnBackendAttributeType_t.CUDNN_TYPE_DOUBLE;
            assertEquals(0, guest.call(CudnnOpcodes.cudnnCreate, handle).status());
            assertEquals(0, make(guest, 1, Kind.FIRST, new Writer().add(1, INT64, 8, 0, 3, TIMES, SEQUENCES, LETTERS,
                SEQUENCES * LETTERS, LETTERS, 1).add(2, doubles, 0).content()));
            assertEquals(0, make(guest, 2, Kind.FIRST + Kind.CTC.ordinal(),
                new Writer().add(1, INT64, 5, 0, 0, 0, 0, 0).add(2, doubles, 0).content()));
            memory = guest.allocate(3 * PROBS_BYTES);
            place();
        }

        void place() {
            probs = memory;
            costs = memory + PROBS_BYTES;
            gradients = costs + SEQUENCES * Float.BYTES;
            workspace = gradients + PROBS_BYTES;
        }

        private static MemorySegment integers(int[] numbers) {
            return Arena.ofAuto().allocateFrom(ValueLayout.JAVA_INT, numbers);
        }

        Guest.Received ask(Guest guest, boolean isQuestion) throws IOException {
            int opcode = isQuestion ? CudnnOpcodes.hwsDnnCtcSize : CudnnOpcodes.hwsDnnCtcLoss;
            return guest.replyTo(guest.send(opcode, Guest.REPLY | (isQuestion ? 0 : Guest.CREDITED), out -> {
                int at = HwsDnnHandle.BYTES + HwsDnnCtcLoss.BYTES;
                int loss = HwsDnnHandle.BYTES;
                out.fixed(at + 32);
                out.i64(0, handle);
                out.i64(loss + HwsDnnCtcLoss.PROBS_DESC_OFFSET, probsDesc);
                out.i64(loss + HwsDnnCtcLoss.GRADIENTS_DESC_OFFSET, gradientsDesc);
                out.i64(loss + HwsDnnCtcLoss.CTC_LOSS_DESC_OFFSET, ctc);
                out.i64(loss + HwsDnnCtcLoss.PROBS_OFFSET, probs);
                out.i64(loss + HwsDnnCtcLoss.COSTS_OFFSET, costs);
                out.i64(loss + HwsDnnCtcLoss.GRADIENTS_OFFSET, gradients);
                out.i64(loss + HwsDnnCtcLoss.WORKSPACE_OFFSET, workspace);
                out.i64(loss + HwsDnnCtcLoss.WORKSPACE_BYTES_OFFSET, 64);
                out.i64(at, labelCount);
                out.i64(at + 16, batch);
                out.buffer(at + 8, integers(labels));
                out.buffer(at + 24, integers(labelLengths));
                out.buffer(at + 28, integers(inputLengths));
            }));
        }

        int status(Guest guest) throws IOException {
            return ask(guest, false).status();
        }
    }

    @Test
    void shouldCheckLabelsAndMemoryOfLosses() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            Loss loss = new Loss(guest);
            assertEquals(0, loss.status(guest));
            Guest.Received size = loss.ask(guest, true);
            assertEquals(0, size.status());
            assertEquals(3, size.i64(0), "labels that the library has");
            loss.gradients = 0;
            assertEquals(0, loss.status(guest), "gradients are optional");
            for (long wrong : new long[] {0, -1, 8, Long.MIN_VALUE}) {
                for (int which = 0; which < 4; which++) {
                    loss.place();
                    loss.probs = which == 0 ? wrong : loss.probs;
                    loss.costs = which == 1 ? wrong : loss.costs;
                    loss.gradients = which == 2 ? wrong : loss.gradients;
                    loss.workspace = which == 3 ? wrong : loss.workspace;
                    assertEquals(which == 2 && wrong == 0 ? 0 : CUDNN_STATUS_BAD_PARAM, loss.status(guest));
                }
            }
            loss.place();
            int[][] lengths = {{2, 2}, {1, 1}, {-1, 4}, {4, -1}, {Integer.MAX_VALUE, Integer.MIN_VALUE}};
            for (int[] wrong : lengths) {
                loss.labelLengths = wrong;
                assertEquals(CUDNN_STATUS_BAD_PARAM, loss.status(guest));
                assertEquals(CUDNN_STATUS_BAD_PARAM, loss.ask(guest, true).status());
            }
            loss.labelLengths = new int[] {3};
            loss.inputLengths = new int[] {TIMES};
            loss.batch = 1;
            assertEquals(CUDNN_STATUS_BAD_PARAM, loss.status(guest), "the tensor has two sequences");
            loss.batch = SEQUENCES;
            loss.labelLengths = new int[] {2, 1};
            loss.inputLengths = new int[] {TIMES, TIMES};
            assertEquals(0, loss.status(guest));
            loss.probsDesc = 0;
            assertEquals(CUDNN_STATUS_BAD_PARAM, loss.status(guest));
            assertEquals(4, HeapMath.dnnOf(rig.gpu()).losses());
        }
    }

    @Test
    void shouldEndSessionForLossesWithOtherDescriptors() throws IOException {
        for (long[] ids : new long[][] {{2, 1, 2}, {1, 2, 2}, {1, 1, 1}, {99, 1, 2}, {1, -1, 2}, {1, 1, 99}}) {
            try (Rig rig = Rig.withGuest(Carrier.TCP)) {
                Loss loss = new Loss(rig.guest());
                loss.probsDesc = ids[0];
                loss.gradientsDesc = ids[1];
                loss.ctc = ids[2];
                assertThrows(IOException.class, () -> loss.status(rig.guest()));
                assertEquals(0, HeapMath.dnnOf(rig.gpu()).losses());
            }
        }
    }

    private static long memory(Kind kind, long... numbers) {
        return CudnnObject.memory(new Content(kind, numbers, new double[0], 0, 0, 0));
    }

    @Test
    void shouldComputeTheMemoryOfOlderDescriptors() {
        assertEquals(2 * 3 * 4 * 5 * 4, memory(Kind.TENSOR, 0, 4, 2, 3, 4, 5, 60, 20, 5, 1));
        assertEquals(2 * 3 * 4 * 5 * 2, memory(Kind.FILTER, 2, 0, 4, 2, 3, 4, 5));
        assertEquals(3 * 2 * 4 * 4, memory(Kind.RNN_DATA, 0, 0, 3, 2, 4, 0, 0, 3, 1));
        assertEquals(4 * 4 * 4, memory(Kind.RNN_DATA, 0, 1, 3, 2, 4, 0, 0, 3, 1));
        Random random = new Random(7);
        for (int i = 0; i < 100_000; i++) { // numbers of a guest never wrap to a small size, and never throw
            long[] numbers = {random.nextInt(24), 3, random.nextLong(), random.nextLong(), random.nextLong(),
                random.nextLong(), random.nextLong(), random.nextLong()};
            assertTrue(memory(Kind.TENSOR, numbers) > 0);
        }
    }
}
