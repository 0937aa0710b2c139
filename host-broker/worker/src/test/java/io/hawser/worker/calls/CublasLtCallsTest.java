package io.hawser.worker.calls;

import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_INVALID_VALUE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cublas.CublasOpcodes;
import io.hawser.cuda.generated.cublaslt.CublasLtOpcodes;
import io.hawser.cuda.generated.cublaslt.HwsLtLayout;
import io.hawser.cuda.generated.cublaslt.HwsLtMatmulDesc;
import io.hawser.cuda.generated.cublaslt.cublasLtEpilogue_t;
import io.hawser.cuda.generated.cublaslt.cublasLtMatmulAlgo_t;
import io.hawser.cuda.generated.cublaslt.cublasLtMatmulHeuristicResult_t;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.HeapCublasLt;
import io.hawser.worker.fixture.HeapMath;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class CublasLtCallsTest {
    private static final int N = 16;
    private static final int BYTES = N * N * Float.BYTES;
    private static final int TARGET = 0;
    private static final int DESC = 32;
    private static final int LAYOUTS = 208; // after HwsLtEmulation
    private static final int SCALARS = LAYOUTS + 4 * HwsLtLayout.BYTES;
    private static final int MATRICES = SCALARS + 64;
    private static final int ALGO = MATRICES + 32;
    private static final int MATMUL_BYTES = ALGO + 72;
    private static final int PREFERENCE = SCALARS;
    private static final int REQUESTED = PREFERENCE + 64;
    private static final int HEURISTIC_BYTES = REQUESTED + 16;

    /** A product of square matrices of floats, which a test changes. */
    private static final class Product implements Consumer<RecordWriter> {
        private final List<Consumer<RecordWriter>> changes = new ArrayList<>();
        private final long handle;
        private final long matrix;

        Product(long handle, long matrix) {
            this.handle = handle;
            this.matrix = matrix;
        }

        Product with(Consumer<RecordWriter> change) {
            changes.add(change);
            return this;
        }

        Product layout(int which, int offset, long value, int bytes) {
            int at = LAYOUTS + which * HwsLtLayout.BYTES + offset;
            return with(out -> put(out, at, value, bytes));
        }

        Product desc(int offset, long value, int bytes) {
            return with(out -> put(out, DESC + offset, value, bytes));
        }

        Product algo(long first) {
            return with(out -> {
                out.i64(ALGO, 1);
                out.i64(ALGO + Long.BYTES, first);
            });
        }

        private static void put(RecordWriter out, int at, long value, int bytes) {
            switch (bytes) {
                case 1 -> out.i8(at, (int) value);
                case 2 -> out.i16(at, (int) value);
                case 4 -> out.i32(at, (int) value);
                default -> out.i64(at, value);
            }
        }

        void descriptors(RecordWriter out) {
            out.i64(TARGET, handle);
            out.i16(DESC + HwsLtMatmulDesc.COMPUTE_TYPE_OFFSET, 68);
            out.i16(DESC + HwsLtMatmulDesc.AUX_TYPE_OFFSET, -1);
            out.i16(DESC + HwsLtMatmulDesc.BIAS_TYPE_OFFSET, -1);
            out.i16(DESC + HwsLtMatmulDesc.EPILOGUE_OFFSET, cublasLtEpilogue_t.CUBLASLT_EPILOGUE_DEFAULT);
            out.i8(DESC + HwsLtMatmulDesc.FILL_MODE_OFFSET, 2);
            for (int i = 0; i < 4; i++) {
                int at = LAYOUTS + i * HwsLtLayout.BYTES;
                out.i64(at + HwsLtLayout.ROWS_OFFSET, N);
                out.i64(at + HwsLtLayout.COLS_OFFSET, N);
                out.i64(at + HwsLtLayout.LD_OFFSET, N);
                out.i32(at + HwsLtLayout.BATCH_COUNT_OFFSET, 1);
            }
        }

        @Override
        public void accept(RecordWriter out) {
            out.fixed(MATMUL_BYTES);
            descriptors(out);
            for (int i = 0; i < 2; i++) {
                out.i32(SCALARS + 32 * i + 4, Float.BYTES);
            }
            for (int i = 0; i < 4; i++) {
                out.i64(MATRICES + 8 * i, matrix);
            }
            changes.forEach(change -> change.accept(out));
        }

        int call(Guest guest) throws IOException {
            return guest.replyTo(guest.send(CublasLtOpcodes.hwsLtMatmul, Guest.REPLY | Guest.CREDITED, this)).status();
        }
    }

    private static long create(Guest guest) throws IOException {
        long handle = guest.newId(HandleKind.CUBLASLT);
        assertEquals(0, guest.call(CublasLtOpcodes.cublasLtCreate, handle).status());
        return handle;
    }

    @Test
    void shouldOpenLibraryAtTheFirstCallOnly() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            rig.guest().allocate(BYTES);
            assertNull(HeapMath.ltOf(rig.gpu()));
            long handle = create(rig.guest());
            assertEquals(1, HeapMath.ltOf(rig.gpu()).handles());
            rig.guest().send(CublasLtOpcodes.cublasLtDestroy, 0, handle);
            assertEquals(0, rig.guest().call(Guest.CTX_SYNCHRONIZE).status());
            assertEquals(0, HeapMath.ltOf(rig.gpu()).handles());
        }
    }

    @Test
    void shouldMakeDescriptorsOnceForEqualContents() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long handle = create(guest);
            long matrix = guest.allocate(2 * BYTES);
            int bias = cublasLtEpilogue_t.CUBLASLT_EPILOGUE_BIAS;
            for (int i = 0; i < 3; i++) {
                // Addresses are no part of the content.
                assertEquals(0, new Product(handle, matrix + i * 256L)
                    .desc(HwsLtMatmulDesc.EPILOGUE_OFFSET, bias, 2)
                    .desc(HwsLtMatmulDesc.BIAS_OFFSET, matrix + i * 256L, 8).call(guest));
            }
            HeapCublasLt library = HeapMath.ltOf(rig.gpu());
            assertEquals(1, library.made());
            assertEquals(3, library.runs());
            assertEquals(0, new Product(handle, matrix).call(guest));
            assertEquals(0, new Product(handle, matrix).layout(3, HwsLtLayout.ORDER_OFFSET, 1, 4).call(guest));
            assertEquals(3, library.made());
        }
    }

    @Test
    void shouldBoundTheDescriptorsThatItKeeps() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long handle = create(guest);
            long matrix = guest.allocate(BYTES);
            int more = 10;
            for (int i = 0; i < CublasLtCalls.MAX_CONTENTS + more; i++) {
                assertEquals(0, new Product(handle, matrix)
                    .desc(HwsLtMatmulDesc.SM_COUNT_TARGET_OFFSET, i, 4).call(guest));
            }
            assertEquals(more, HeapMath.ltOf(rig.gpu()).closed());
        }
    }

    @Test
    void shouldRefuseMatricesOutsideTheSessionsMemory() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long handle = create(guest);
            long matrix = guest.allocate(BYTES);
            assertEquals(0, new Product(handle, matrix).call(guest));
            for (int which = 0; which < 4; which++) {
                for (long address : new long[] {matrix + Float.BYTES, matrix - Float.BYTES, -1, Long.MIN_VALUE}) {
                    int at = MATRICES + 8 * which;
                    assertEquals(CUBLAS_STATUS_INVALID_VALUE,
                        new Product(handle, matrix).with(out -> out.i64(at, address)).call(guest));
                }
                for (long number : new long[] {N + 1, -1, Long.MIN_VALUE, Long.MAX_VALUE, 1L << 61, 1L << 32}) {
                    for (int field : new int[] {HwsLtLayout.ROWS_OFFSET, HwsLtLayout.COLS_OFFSET,
                        HwsLtLayout.LD_OFFSET}) {
                        assertEquals(CUBLAS_STATUS_INVALID_VALUE,
                            new Product(handle, matrix).layout(which, field, number, 8).call(guest),
                            "which=" + which + " field=" + field + " number=" + number);
                    }
                }
                for (long count : new long[] {2, -1, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
                    for (long stride : new long[] {1, -1, Long.MIN_VALUE, Long.MAX_VALUE, 1L << 62}) {
                        assertEquals(CUBLAS_STATUS_INVALID_VALUE, new Product(handle, matrix)
                            .layout(which, HwsLtLayout.BATCH_COUNT_OFFSET, count, 4)
                            .layout(which, HwsLtLayout.BATCH_STRIDE_OFFSET, stride, 8).call(guest),
                            "count=" + count + " stride=" + stride);
                    }
                }
                for (long plane : new long[] {BYTES, -BYTES, Long.MAX_VALUE}) {
                    assertEquals(CUBLAS_STATUS_INVALID_VALUE, new Product(handle, matrix)
                        .layout(which, HwsLtLayout.PLANE_OFFSET_OFFSET, plane, 8).call(guest));
                }
            }
            assertEquals(1, HeapMath.ltOf(rig.gpu()).runs());
        }
    }

    @Test
    void shouldRefuseDescriptorAddressesOutsideTheSessionsMemory() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long handle = create(guest);
            long matrix = guest.allocate(BYTES);
            long end = matrix + BYTES;
            int all = cublasLtEpilogue_t.CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
            for (int at = HwsLtMatmulDesc.BIAS_OFFSET; at < HwsLtMatmulDesc.BYTES; at += Long.BYTES) {
                int field = at;
                assertEquals(CUBLAS_STATUS_INVALID_VALUE, new Product(handle, matrix)
                    .desc(HwsLtMatmulDesc.EPILOGUE_OFFSET, all, 2).desc(HwsLtMatmulDesc.AUX_LD_OFFSET, N, 8)
                    .desc(field, end, 8).call(guest), "field=" + field);
            }
            Product aux = new Product(handle, matrix).desc(HwsLtMatmulDesc.EPILOGUE_OFFSET, all, 2)
                .desc(HwsLtMatmulDesc.AUX_OFFSET, matrix, 8).desc(HwsLtMatmulDesc.AUX_LD_OFFSET, N, 8);
            assertEquals(0, aux.call(guest));
            for (long ld : new long[] {N + 1, -1, Long.MAX_VALUE}) {
                assertEquals(CUBLAS_STATUS_INVALID_VALUE, aux.desc(HwsLtMatmulDesc.AUX_LD_OFFSET, ld, 8).call(guest));
            }
            Product workspace = new Product(handle, matrix).with(out -> {
                out.i64(TARGET + 16, matrix);
                out.i64(TARGET + 24, BYTES + 1L);
            });
            assertEquals(CUBLAS_STATUS_INVALID_VALUE, workspace.call(guest));
            Product scalar = new Product(handle, matrix).desc(HwsLtMatmulDesc.POINTER_MODE_OFFSET, 1, 1)
                .with(out -> out.i64(SCALARS + 8, end - 1));
            assertEquals(CUBLAS_STATUS_INVALID_VALUE, scalar.call(guest));
            Product vector = new Product(handle, matrix).desc(HwsLtMatmulDesc.POINTER_MODE_OFFSET, 4, 1)
                .with(out -> out.i64(SCALARS + 8, end - 4 * N + 4));
            assertEquals(CUBLAS_STATUS_INVALID_VALUE, vector.call(guest));
        }
    }

    @Test
    void shouldGiveTheLibraryNoUnknownEnumeration() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long handle = create(guest);
            long matrix = guest.allocate(BYTES);
            for (int at = HwsLtMatmulDesc.POINTER_MODE_OFFSET; at < HwsLtMatmulDesc.SM_COUNT_TARGET_OFFSET; at++) {
                if (at != HwsLtMatmulDesc.FAST_ACCUM_OFFSET) { // any number but 0 is true
                    assertEquals(CUBLAS_STATUS_INVALID_VALUE, new Product(handle, matrix).desc(at, 0xff, 1)
                        .call(guest), "at=" + at);
                }
            }
            assertEquals(CUBLAS_STATUS_INVALID_VALUE, new Product(handle, matrix)
                .desc(HwsLtMatmulDesc.EPILOGUE_OFFSET, 3, 2).call(guest));
            for (int field : new int[] {HwsLtLayout.TYPE_OFFSET, HwsLtLayout.ORDER_OFFSET}) {
                for (int value : new int[] {99, -1}) {
                    assertEquals(CUBLAS_STATUS_INVALID_VALUE,
                        new Product(handle, matrix).layout(0, field, value, 4).call(guest));
                }
            }
            assertEquals(CUBLAS_STATUS_INVALID_VALUE, new Product(handle, matrix)
                .layout(0, HwsLtLayout.BATCH_MODE_OFFSET, 2, 2).call(guest), "a grouped layout");
            assertEquals(CUBLAS_STATUS_INVALID_VALUE, new Product(handle, matrix)
                .layout(3, HwsLtLayout.PLANE_OFFSET_OFFSET, 1, 8).call(guest), "a plane of real numbers");
            HeapCublasLt library = HeapMath.ltOf(rig.gpu());
            assertEquals(0, library.made() + library.runs());
        }
    }

    private static Guest.Received heuristic(Guest guest, Product product, int requested) throws IOException {
        return guest.call(CublasLtOpcodes.hwsLtAlgoGetHeuristic, out -> {
            out.fixed(HEURISTIC_BYTES);
            product.descriptors(out);
            out.i32(REQUESTED, requested);
        });
    }

    @Test
    void shouldGiveTheLibraryOnlyItsOwnAlgorithms() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long handle = create(guest);
            long matrix = guest.allocate(BYTES);
            assertEquals(CUBLAS_STATUS_INVALID_VALUE, new Product(handle, matrix).algo(0x666).call(guest));
            HeapCublasLt library = HeapMath.ltOf(rig.gpu());
            assertEquals(1, library.checks());
            Guest.Received found = heuristic(guest, new Product(handle, matrix), 3);
            assertEquals(0, found.status());
            assertTrue(found.lengthBytes() >= 3 * cublasLtMatmulHeuristicResult_t.BYTES);
            for (int i = 0; i < 2; i++) {
                assertEquals(0, new Product(handle, matrix).algo(HeapCublasLt.MARK).call(guest));
            }
            assertEquals(1, library.checks(), "an algorithm that the library has made needs no check");
            for (int isConfig = 0; isConfig < 2; isConfig++) {
                int config = isConfig;
                assertEquals(CUBLAS_STATUS_INVALID_VALUE, guest.call(CublasLtOpcodes.hwsLtAlgoGetAttribute, out -> {
                    out.fixed(cublasLtMatmulAlgo_t.BYTES + 16);
                    out.i64(0, 0x666);
                    out.i32(cublasLtMatmulAlgo_t.BYTES, config);
                    out.i32(cublasLtMatmulAlgo_t.BYTES + 8, 4);
                }).status());
            }
            assertEquals(0, library.strangers());
        }
    }

    @Test
    void shouldEndSessionForMoreAlgorithmsThanAReplyHolds() throws IOException {
        for (int requested : new int[] {0, -1, 513, Integer.MAX_VALUE}) {
            try (Rig rig = Rig.withGuest(Carrier.TCP)) {
                long handle = create(rig.guest());
                rig.guest().send(CublasLtOpcodes.hwsLtAlgoGetHeuristic, 0, out -> {
                    out.fixed(HEURISTIC_BYTES);
                    new Product(handle, 0).descriptors(out);
                    out.i32(REQUESTED, requested);
                });
                assertTrue(rig.guest().reasonOfLoss().contains("algorithms"));
            }
        }
    }

    @Test
    void shouldTakeHandleOfCublasAndNoOther() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long cublas = guest.newId(HandleKind.CUBLAS);
            assertEquals(0, guest.call(CublasOpcodes.cublasCreate_v2, cublas).status());
            long matrix = guest.allocate(BYTES);
            assertEquals(0, new Product(cublas, matrix).call(guest));
            guest.send(CublasLtOpcodes.hwsLtMatmul, Guest.CREDITED,
                new Product(guest.newId(HandleKind.CUBLASLT), matrix));
            assertTrue(guest.reasonOfLoss().contains("handle"));
        }
    }
}
