package io.hawser.worker.calls;

import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_INVALID_VALUE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.backend.SparseContent;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cublas.HwsScalar;
import io.hawser.cuda.generated.cublas.cudaDataType_t;
import io.hawser.cuda.generated.cusparse.CusparseOpcodes;
import io.hawser.cuda.generated.cusparse.HwsSparseContent;
import io.hawser.cuda.generated.cusparse.HwsSparseFunction;
import io.hawser.cuda.generated.cusparse.HwsSparseHandle;
import io.hawser.cuda.generated.cusparse.HwsSparseKind;
import io.hawser.cuda.generated.cusparse.HwsSparseOperation;
import io.hawser.cuda.generated.cusparse.cusparseFormat_t;
import io.hawser.cuda.generated.cusparse.cusparseIndexType_t;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.HeapCusparse;
import io.hawser.worker.fixture.HeapMath;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class CusparseCallsTest {
    private static final int OPERATION = HwsSparseHandle.BYTES;
    private static final int ALPHA = OPERATION + HwsSparseOperation.BYTES;
    private static final int BETA = ALPHA + HwsScalar.BYTES;
    private static final int A = BETA + HwsScalar.BYTES;
    private static final int B = A + HwsSparseContent.BYTES;
    private static final int C = B + HwsSparseContent.BYTES;
    private static final int BUFFER = C + HwsSparseContent.BYTES;
    private static final int RUN_BYTES = BUFFER + 16;
    private static final int ANALYSE_BYTES = BUFFER + 48;
    private static final int ROWS = 8;
    private static final int ELEMENTS = 16;
    private static final long BYTES = 1024;

    /** A record of a product of a matrix and a vector in float, which a test changes. */
    private static MemorySegment product(long handle, long memory) {
        MemorySegment record = Arena.ofAuto().allocate(ANALYSE_BYTES, 8);
        record.set(ValueLayout.JAVA_LONG, 0, handle);
        record.set(ValueLayout.JAVA_INT, OPERATION, HwsSparseFunction.HWS_SPARSE_SPMV);
        record.set(ValueLayout.JAVA_INT, OPERATION + HwsSparseOperation.COMPUTE_TYPE_OFFSET,
            cudaDataType_t.CUDA_R_32F);
        record.set(ValueLayout.JAVA_INT, ALPHA + HwsScalar.VALUE_BYTES_OFFSET, Float.BYTES);
        record.set(ValueLayout.JAVA_INT, BETA + HwsScalar.VALUE_BYTES_OFFSET, Float.BYTES);
        MemorySegment matrix = record.asSlice(A, HwsSparseContent.BYTES);
        fill(matrix, HwsSparseKind.HWS_SPARSE_SP_MAT, memory);
        matrix.set(ValueLayout.JAVA_INT, HwsSparseContent.FORMAT_OFFSET, cusparseFormat_t.CUSPARSE_FORMAT_CSR);
        matrix.set(ValueLayout.JAVA_LONG, HwsSparseContent.COLS_OFFSET, ROWS);
        matrix.set(ValueLayout.JAVA_LONG, HwsSparseContent.NNZ_OFFSET, ELEMENTS);
        matrix.set(ValueLayout.JAVA_LONG, HwsSparseContent.OFFSETS_OFFSET, memory);
        matrix.set(ValueLayout.JAVA_LONG, HwsSparseContent.INDICES_OFFSET, memory);
        matrix.set(ValueLayout.JAVA_INT, HwsSparseContent.OFFSET_TYPE_OFFSET, cusparseIndexType_t.CUSPARSE_INDEX_32I);
        matrix.set(ValueLayout.JAVA_INT, HwsSparseContent.INDEX_TYPE_OFFSET, cusparseIndexType_t.CUSPARSE_INDEX_32I);
        fill(record.asSlice(B, HwsSparseContent.BYTES), HwsSparseKind.HWS_SPARSE_DN_VEC, memory);
        fill(record.asSlice(C, HwsSparseContent.BYTES), HwsSparseKind.HWS_SPARSE_DN_VEC, memory);
        return record;
    }

    private static void fill(MemorySegment content, int kind, long memory) {
        content.set(ValueLayout.JAVA_INT, HwsSparseContent.KIND_OFFSET, kind);
        content.set(ValueLayout.JAVA_LONG, HwsSparseContent.ROWS_OFFSET, ROWS);
        content.set(ValueLayout.JAVA_LONG, HwsSparseContent.VALUES_OFFSET, memory);
        content.set(ValueLayout.JAVA_INT, HwsSparseContent.BATCHES_OFFSET, 1);
        content.set(ValueLayout.JAVA_INT, HwsSparseContent.VALUE_TYPE_OFFSET, cudaDataType_t.CUDA_R_32F);
    }

    private static long send(Guest guest, int opcode, int bytes, MemorySegment record) throws IOException {
        return guest.send(opcode, Guest.REPLY | Guest.CREDITED, out -> {
            out.fixed(bytes);
            out.struct(0, record, 0, bytes);
        });
    }

    private static int run(Guest guest, MemorySegment record) throws IOException {
        return guest.replyTo(send(guest, CusparseOpcodes.hwsSparseRun, RUN_BYTES, record)).status();
    }

    private static long handle(Guest guest) throws IOException {
        long handle = guest.newId(HandleKind.CUSPARSE);
        assertEquals(0, guest.call(CusparseOpcodes.cusparseCreate, handle).status());
        return handle;
    }

    @Test
    void shouldCheckTheMemoryOfContents() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(BYTES);
            long handle = handle(guest);
            HeapCusparse library = HeapMath.sparseOf(rig.gpu());
            assertEquals(0, run(guest, product(handle, memory)));
            assertEquals(1, library.runs());
            assertEquals(0, library.descriptors(), "descriptors end with the call");
            long[][] needed = {{A + HwsSparseContent.OFFSETS_OFFSET, (ROWS + 1) * 4},
                {A + HwsSparseContent.INDICES_OFFSET, ELEMENTS * 4}, {A + HwsSparseContent.VALUES_OFFSET, ELEMENTS * 4},
                {B + HwsSparseContent.VALUES_OFFSET, ROWS * 4}, {C + HwsSparseContent.VALUES_OFFSET, ROWS * 4},
                {BUFFER, 1}};
            for (long[] place : needed) {
                MemorySegment record = product(handle, memory);
                record.set(ValueLayout.JAVA_LONG, place[0], memory + BYTES - place[1]);
                assertEquals(0, run(guest, record));
                for (long wrong : new long[] {memory + BYTES - place[1] + 1, memory - 1, 1, -1, Long.MIN_VALUE}) {
                    record.set(ValueLayout.JAVA_LONG, place[0], wrong);
                    assertEquals(CUSPARSE_STATUS_INVALID_VALUE, run(guest, record), "at " + place[0]);
                }
            }
            assertEquals(1 + needed.length, library.runs());
            assertEquals(0, library.descriptors());
        }
    }

    @Test
    void shouldCheckTheMemoryOfOlderFunctions() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(BYTES);
            long handle = handle(guest);
            for (long[] call : new long[][] {{0, 0, 0}, {BYTES - 32, 0, CUSPARSE_STATUS_INVALID_VALUE},
                {0, BYTES - 63, CUSPARSE_STATUS_INVALID_VALUE}, {BYTES - 36, BYTES - 64, 0}}) {
                assertEquals(call[2], guest.replyTo(guest.send(CusparseOpcodes.cusparseXcsr2coo,
                    Guest.REPLY | Guest.CREDITED, out -> {
                        out.fixed(56);
                        out.i64(0, handle);
                        out.i64(24, memory + call[0]);
                        out.i32(32, ELEMENTS);
                        out.i32(36, ROWS);
                        out.i64(40, memory + call[1]);
                    })).status());
            }
            assertEquals(2, HeapMath.sparseOf(rig.gpu()).lists());
        }
    }

    @Test
    void shouldPassComplexThresholdsByValue() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(BYTES);
            long handle = handle(guest);
            HeapCusparse library = HeapMath.sparseOf(rig.gpu());
            for (long values : new long[] {memory + BYTES - ELEMENTS * 16 + 1, memory + BYTES - ELEMENTS * 16}) {
                assertEquals(List.of(), library.threshold());
                long sent = guest.send(CusparseOpcodes.cusparseZcsr2csr_compress, Guest.REPLY | Guest.CREDITED,
                    out -> {
                        out.fixed(128);
                        out.i64(0, handle);
                        out.i32(24, ROWS);
                        out.i32(28, ROWS);
                        out.i64(48, values);
                        out.i64(56, memory);
                        out.i64(64, memory);
                        out.i32(72, ELEMENTS);
                        out.i64(80, memory);
                        out.i64(104, memory);
                        out.f64(112, 1.5);
                        out.f64(120, -2.5);
                    });
                boolean isInside = values + ELEMENTS * 16 <= memory + BYTES;
                assertEquals(isInside ? 0 : CUSPARSE_STATUS_INVALID_VALUE, guest.replyTo(sent).status());
            }
            assertEquals(List.of(1.5, -2.5), library.threshold());
        }
    }

    @Test
    void shouldEndSessionForHostileRecords() throws IOException {
        List<Consumer<MemorySegment>> changes = List.of(
            r -> r.set(ValueLayout.JAVA_INT, OPERATION, 0),
            r -> r.set(ValueLayout.JAVA_INT, OPERATION, 99),
            r -> r.set(ValueLayout.JAVA_INT, OPERATION, HwsSparseFunction.HWS_SPARSE_SPSV_ANALYSIS), // the caller waits
            r -> r.set(ValueLayout.JAVA_INT, OPERATION, HwsSparseFunction.HWS_SPARSE_SPMM), // vectors for matrices
            r -> r.set(ValueLayout.JAVA_INT, OPERATION, HwsSparseFunction.HWS_SPARSE_SPSV_SOLVE), // no operation
            r -> r.set(ValueLayout.JAVA_INT, HwsSparseHandle.POINTER_MODE_OFFSET, 7),
            r -> r.set(ValueLayout.JAVA_INT, ALPHA, 1), // a number on the device in host mode
            r -> r.set(ValueLayout.JAVA_INT, ALPHA + HwsScalar.VALUE_BYTES_OFFSET, 8),
            r -> r.set(ValueLayout.JAVA_INT, BETA + HwsScalar.VALUE_BYTES_OFFSET, 0),
            r -> r.set(ValueLayout.JAVA_INT, A + HwsSparseContent.KIND_OFFSET, 99),
            r -> r.set(ValueLayout.JAVA_INT, A + HwsSparseContent.FORMAT_OFFSET, 4),
            r -> r.set(ValueLayout.JAVA_LONG, A + HwsSparseContent.ROWS_OFFSET, -1),
            r -> r.set(ValueLayout.JAVA_LONG, A + HwsSparseContent.NNZ_OFFSET, Long.MIN_VALUE),
            r -> r.set(ValueLayout.JAVA_INT, A + HwsSparseContent.BATCHES_OFFSET, 0),
            r -> r.set(ValueLayout.JAVA_INT, A + HwsSparseContent.OFFSET_TYPE_OFFSET, 0),
            r -> r.set(ValueLayout.JAVA_INT, A + HwsSparseContent.INDEX_BASE_OFFSET, 2),
            r -> r.set(ValueLayout.JAVA_INT, A + HwsSparseContent.FILL_MODE_OFFSET, 3),
            r -> r.set(ValueLayout.JAVA_INT, B + HwsSparseContent.VALUE_TYPE_OFFSET, 999),
            r -> r.set(ValueLayout.JAVA_LONG, B + HwsSparseContent.ID_OFFSET, 5), // a vector has no object
            r -> r.set(ValueLayout.JAVA_LONG, A + HwsSparseContent.ID_OFFSET, -5),
            r -> r.set(ValueLayout.JAVA_LONG, 0, 5));
        for (Consumer<MemorySegment> change : changes) {
            try (Rig rig = Rig.withGuest(Carrier.TCP)) {
                long memory = rig.guest().allocate(BYTES);
                MemorySegment record = product(handle(rig.guest()), memory);
                change.accept(record);
                send(rig.guest(), CusparseOpcodes.hwsSparseRun, RUN_BYTES, record);
                assertTrue(rig.guest().reasonOfLoss().length() > 0, "change " + changes.indexOf(change));
                assertEquals(0, HeapMath.sparseOf(rig.gpu()).runs());
            }
        }
    }

    @Test
    void shouldKeepStateOfMatrices() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(BYTES);
            MemorySegment record = product(handle(guest), memory);
            HeapCusparse library = HeapMath.sparseOf(rig.gpu());
            record.set(ValueLayout.JAVA_LONG, A + HwsSparseContent.ID_OFFSET, 5);
            record.set(ValueLayout.JAVA_INT, OPERATION, HwsSparseFunction.HWS_SPARSE_SPMV_PREPROCESS);
            assertEquals(0, guest.replyTo(send(guest, CusparseOpcodes.hwsSparseAnalyse, ANALYSE_BYTES, record))
                .status());
            assertEquals(1, library.descriptors());
            record.set(ValueLayout.JAVA_INT, OPERATION, HwsSparseFunction.HWS_SPARSE_SPMV);
            assertEquals(0, run(guest, record));
            assertEquals(0, library.updates());
            record.set(ValueLayout.JAVA_LONG, A + HwsSparseContent.VALUES_OFFSET, memory + 8);
            assertEquals(0, run(guest, record));
            assertEquals(1, library.updates());
            guest.send(CusparseOpcodes.hwsSparseDrop, 0, 77L); // a descriptor that no call has used
            record.set(ValueLayout.JAVA_LONG, A + HwsSparseContent.COLS_OFFSET, ROWS + 1);
            send(guest, CusparseOpcodes.hwsSparseRun, RUN_BYTES, record);
            assertTrue(guest.reasonOfLoss().contains("shape of a matrix"));
        }
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            MemorySegment record = product(handle(guest), guest.allocate(BYTES));
            record.set(ValueLayout.JAVA_LONG, A + HwsSparseContent.ID_OFFSET, 5);
            assertEquals(0, run(guest, record));
            assertEquals(1, HeapMath.sparseOf(rig.gpu()).descriptors());
            guest.send(CusparseOpcodes.hwsSparseDrop, 0, 5L);
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
            assertEquals(0, HeapMath.sparseOf(rig.gpu()).descriptors());
        }
    }

    @Test
    void shouldCheckNewValuesByTheAnalysedMatrix() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(BYTES);
            long handle = handle(guest);
            MemorySegment update = Arena.ofAuto().allocate(ANALYSE_BYTES, 8);
            update.set(ValueLayout.JAVA_LONG, 0, handle);
            update.set(ValueLayout.JAVA_INT, OPERATION, HwsSparseFunction.HWS_SPARSE_SPSV_UPDATE);
            update.set(ValueLayout.JAVA_LONG, OPERATION + HwsSparseOperation.STATE_OFFSET, 6);
            update.set(ValueLayout.JAVA_LONG, BUFFER, memory);
            assertEquals(CUSPARSE_STATUS_INVALID_VALUE, run(guest, update), "before an analysis");
            MemorySegment record = product(handle, memory);
            record.set(ValueLayout.JAVA_INT, OPERATION, HwsSparseFunction.HWS_SPARSE_SPSV_ANALYSIS);
            record.set(ValueLayout.JAVA_LONG, OPERATION + HwsSparseOperation.STATE_OFFSET, 6);
            assertEquals(0, guest.replyTo(send(guest, CusparseOpcodes.hwsSparseAnalyse, ANALYSE_BYTES, record))
                .status());
            update.set(ValueLayout.JAVA_LONG, BUFFER, memory + BYTES - ELEMENTS * 4);
            assertEquals(0, run(guest, update));
            update.set(ValueLayout.JAVA_LONG, BUFFER, memory + BYTES - ELEMENTS * 4 + 1);
            assertEquals(CUSPARSE_STATUS_INVALID_VALUE, run(guest, update));
        }
    }

    @Test
    void shouldAcceptInfosOfTheirKindOnly() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long handle = handle(guest);
            long info = guest.newId(HandleKind.CSRIC02);
            assertEquals(0, guest.call(CusparseOpcodes.cusparseCreateCsric02Info, info).status());
            for (HandleKind kind : new HandleKind[] {HandleKind.CSRIC02, HandleKind.BSRSV2}) {
                long sent = guest.send(CusparseOpcodes.hwsSparseZeroPivot, Guest.REPLY, out -> {
                    out.fixed(40);
                    out.i64(0, handle);
                    out.i32(24, kind.number());
                    out.i64(32, info);
                });
                if (kind == HandleKind.CSRIC02) {
                    assertEquals(0, guest.replyTo(sent).status());
                } else {
                    assertTrue(guest.reasonOfLoss().contains("handle must have been created"));
                }
            }
        }
    }

    @Test
    void shouldNeverComputeSmallSizesForHostileNumbers() {
        Random random = new Random(7);
        MemorySegment struct = Arena.ofAuto().allocate(HwsSparseContent.BYTES, 8);
        SparseContent content = new SparseContent(struct);
        for (int i = 0; i < 100_000; i++) {
            fill(struct, 1 + random.nextInt(4), 0);
            struct.set(ValueLayout.JAVA_INT, HwsSparseContent.FORMAT_OFFSET, 1 + random.nextInt(7));
            struct.set(ValueLayout.JAVA_INT, HwsSparseContent.ORDER_OFFSET, 1 + random.nextInt(2));
            struct.set(ValueLayout.JAVA_INT, HwsSparseContent.OFFSET_TYPE_OFFSET, 1 + random.nextInt(3));
            struct.set(ValueLayout.JAVA_INT, HwsSparseContent.INDEX_TYPE_OFFSET, 1 + random.nextInt(3));
            struct.set(ValueLayout.JAVA_INT, HwsSparseContent.BATCHES_OFFSET, 1 + random.nextInt(Integer.MAX_VALUE));
            for (long at = HwsSparseContent.ROWS_OFFSET; at < HwsSparseContent.BATCHES_OFFSET; at += Long.BYTES) {
                struct.set(ValueLayout.JAVA_LONG, at, random.nextLong() >>> 1 + random.nextInt(40));
            }
            long elements = content.kind() == HwsSparseKind.HWS_SPARSE_DN_VEC ? content.rows()
                : content.kind() == HwsSparseKind.HWS_SPARSE_DN_MAT ? Math.max(content.rows(), content.cols())
                : content.format() == cusparseFormat_t.CUSPARSE_FORMAT_BLOCKED_ELL
                    || content.format() == cusparseFormat_t.CUSPARSE_FORMAT_SLICED_ELLPACK ? 0
                : content.nnz();
            if (content.isWhole()) {
                assertTrue(content.valueBytes() >= elements && content.offsetBytes() >= 0
                    && content.indexBytes() >= 0, () -> "kind=" + content.kind() + " format=" + content.format());
            }
        }
    }
}
