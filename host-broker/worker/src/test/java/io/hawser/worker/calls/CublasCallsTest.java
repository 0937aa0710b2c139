package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cublas.CublasOpcodes;
import io.hawser.cuda.generated.cublas.HwsScalar;
import io.hawser.cuda.generated.cublas.client.ResultReplyReader;
import io.hawser.cuda.generated.cublas.cublasStatus_t;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.HeapMath;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.session.CudaResult;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class CublasCallsTest {
    private static final int N = 16;
    private static final int BYTES = N * N * Float.BYTES;

    /** A product of square matrices: HwsCublasHandle, 5 numbers, alpha, A, lda, B, ldb, beta, C, ldc. */
    private static final class Product implements Consumer<RecordWriter> {
        private final long handle;
        private long stream;
        private Integer pointerMode; // null: where the numbers are
        private int mathMode;
        private int scalarBytes = Float.BYTES;
        private long scalar; // on the device
        private final long matrix;
        private long result;
        private int rows = N;

        Product(long handle, long matrix) {
            this.handle = handle;
            this.matrix = matrix;
            this.result = matrix;
        }

        @Override
        public void accept(RecordWriter out) {
            out.fixed(192);
            out.i64(0, handle);
            out.i64(8, stream);
            out.i32(32, pointerMode == null ? scalar == 0 ? 0 : 1 : pointerMode);
            out.i32(36, mathMode);
            out.i32(64, rows);
            out.i32(68, N);
            out.i32(72, N);
            for (int at : new int[] {80, 144}) {
                out.i32(at, scalar == 0 ? 0 : 1);
                out.i32(at + 4, scalarBytes);
                out.i64(at + 8, scalar);
                out.f32(at + 16, 2.5f);
            }
            out.i64(112, matrix);
            out.i32(120, N);
            out.i64(128, matrix);
            out.i32(136, N);
            out.i64(176, result);
            out.i32(184, N);
        }

        int call(Guest guest) throws IOException {
            return guest.replyTo(guest.send(CublasOpcodes.cublasSgemm_v2, Guest.REPLY | Guest.CREDITED, this)).status();
        }
    }

    private static long create(Guest guest) throws IOException {
        long handle = guest.newId(HandleKind.CUBLAS);
        assertEquals(0, guest.call(CublasOpcodes.cublasCreate_v2, handle).status());
        return handle;
    }

    @Test
    void shouldOpenLibraryAtTheFirstCallOnly() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            rig.guest().allocate(BYTES);
            assertNull(HeapMath.of(rig.gpu()));
            long handle = create(rig.guest());
            assertEquals(1, HeapMath.of(rig.gpu()).handles());
            rig.guest().send(CublasOpcodes.cublasDestroy_v2, 0, handle);
            assertEquals(0, rig.guest().call(Guest.CTX_SYNCHRONIZE).status());
            assertEquals(0, HeapMath.of(rig.gpu()).handles());
        }
    }

    @Test
    void shouldGiveTheLibraryStateOnlyWhenItHasChanged() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            Product product = new Product(create(guest), guest.allocate(BYTES));
            for (int i = 0; i < 3; i++) {
                assertEquals(0, product.call(guest));
            }
            HeapMath.Cublas library = HeapMath.of(rig.gpu());
            assertEquals(1, library.applied());
            assertEquals(2.5f, library.alpha());
            product.mathMode = 3;
            assertEquals(0, product.call(guest));
            assertEquals(2, library.applied());
            assertEquals(3, library.mathMode());
            long stream = guest.newId(HandleKind.STREAM);
            guest.send(Guest.STREAM_CREATE, 0, stream, 0L);
            product.stream = stream;
            assertEquals(0, product.call(guest));
            assertEquals(3, library.applied());
        }
    }

    @Test
    void shouldRefuseAddressesOutsideTheSessionsMemory() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long handle = create(guest);
            long matrix = guest.allocate(BYTES);
            int invalid = cublasStatus_t.CUBLAS_STATUS_INVALID_VALUE;
            for (long result : new long[] {matrix + Float.BYTES, matrix - Float.BYTES, 0, -1, Long.MIN_VALUE}) {
                Product product = new Product(handle, matrix);
                product.result = result;
                assertEquals(invalid, product.call(guest), "result=" + result);
            }
            Product large = new Product(handle, matrix);
            large.rows = -1;
            assertEquals(invalid, large.call(guest));
            Product scalar = new Product(handle, matrix);
            scalar.scalar = matrix + BYTES;
            assertEquals(invalid, scalar.call(guest));
            scalar.scalar = matrix;
            assertEquals(0, scalar.call(guest));
        }
    }

    @Test
    void shouldAlignComplexNumbers() throws IOException {
        for (Carrier carrier : Carrier.values()) {
            try (Rig rig = Rig.withGuest(carrier)) {
                Guest guest = rig.guest();
                long handle = create(guest);
                long filler = create(guest);
                long matrix = guest.allocate(N * N * 2 * Double.BYTES);
                for (int i = 0; i < 4; i++) { // the records begin at odd and even multiples of 8
                    assertEquals(0, guest.replyTo(guest.send(CublasOpcodes.cublasZgemv_v2, Guest.REPLY | Guest.CREDITED,
                        out -> {
                            out.fixed(184);
                            out.i64(0, handle);
                            out.i32(60, N);
                            out.i32(64, N);
                            for (int at : new int[] {72, 136}) {
                                out.i32(at + 4, 2 * Double.BYTES);
                            }
                            out.i64(104, matrix);
                            out.i32(112, N);
                            out.i64(120, matrix);
                            out.i32(128, 1);
                            out.i64(168, matrix);
                            out.i32(176, 1);
                        })).status());
                    if (i == 1) {
                        guest.send(CublasOpcodes.cublasDestroy_v2, 0, filler);
                    }
                }
                rig.leave();
            }
        }
    }

    @Test
    void shouldEndSessionForHandleThatWasNeverCreated() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            long matrix = rig.guest().allocate(BYTES);
            rig.guest().send(CublasOpcodes.cublasSgemm_v2, Guest.CREDITED,
                new Product(rig.guest().newId(HandleKind.CUBLAS), matrix));
            assertTrue(rig.guest().reasonOfLoss().contains("handle"));
        }
    }

    @Test
    void shouldEndSessionForNumberOfImpossibleSize() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Product product = new Product(create(rig.guest()), rig.guest().allocate(BYTES));
            product.scalarBytes = 17;
            rig.guest().send(CublasOpcodes.cublasSgemm_v2, Guest.CREDITED, product);
            assertTrue(rig.guest().reasonOfLoss().contains("number"));
        }
    }

    @Test
    void shouldEndSessionForNumberOfAnotherType() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Product product = new Product(create(rig.guest()), rig.guest().allocate(BYTES));
            product.scalarBytes = Double.BYTES;
            rig.guest().send(CublasOpcodes.cublasSgemm_v2, Guest.CREDITED, product);
            assertTrue(rig.guest().reasonOfLoss().contains("number"));
        }
    }

    /** A library in host pointer mode would follow an address of the guest in the worker's own memory. */
    @Test
    void shouldEndSessionForNumberElsewhereThanThePointerModeSays() throws IOException {
        for (int pointerMode = 0; pointerMode < 2; pointerMode++) {
            try (Rig rig = Rig.withGuest(Carrier.TCP)) {
                Product product = new Product(create(rig.guest()), rig.guest().allocate(BYTES));
                product.scalar = pointerMode == 0 ? product.matrix : 0;
                product.pointerMode = pointerMode;
                rig.guest().send(CublasOpcodes.cublasSgemm_v2, Guest.CREDITED, product);
                assertTrue(rig.guest().reasonOfLoss().contains("pointer mode"));
            }
        }
    }

    /** HwsCublasHandle, n, x, incx, y, incy, result. */
    private static Consumer<RecordWriter> dot(long handle, long vector, int n, long result) {
        return out -> {
            out.fixed(128);
            out.i64(0, handle);
            out.i32(32, result == 0 ? 0 : 1);
            out.i32(56, n);
            out.i64(64, vector);
            out.i32(72, 1);
            out.i64(80, vector);
            out.i32(88, 1);
            out.i32(96, result == 0 ? 0 : 1);
            out.i32(100, Float.BYTES);
            out.i64(104, result);
        };
    }

    @Test
    void shouldReplyWithResultOnTheHostOnly() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long handle = create(guest);
            long vector = guest.allocate(BYTES);
            Guest.Received host = guest.replyTo(guest.send(CublasOpcodes.cublasSdot_v2, Guest.REPLY | Guest.CREDITED,
                dot(handle, vector, N, 0)));
            assertEquals(0, host.status());
            assertEquals((float) N, ResultReplyReader.cublasSdot_v2(host.fields()).result().get(
                ValueLayout.JAVA_FLOAT_UNALIGNED, HwsScalar.VALUE_OFFSET));
            Guest.Received device = guest.replyTo(guest.send(CublasOpcodes.cublasSdot_v2, Guest.REPLY | Guest.CREDITED,
                dot(handle, vector, N, vector)));
            assertEquals(0, device.status());
        }
    }

    @Test
    void shouldRefuseResultOutsideTheSessionsMemory() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long handle = create(guest);
            long vector = guest.allocate(BYTES);
            for (long result : new long[] {vector + BYTES, vector - Float.BYTES, -1, 8}) {
                assertEquals(cublasStatus_t.CUBLAS_STATUS_INVALID_VALUE, guest.replyTo(guest.send(
                    CublasOpcodes.cublasSdot_v2, Guest.REPLY | Guest.CREDITED, dot(handle, vector, N, result)))
                    .status(), "result=" + result);
            }
            assertEquals(cublasStatus_t.CUBLAS_STATUS_INVALID_VALUE, guest.replyTo(guest.send(
                CublasOpcodes.cublasSdot_v2, Guest.REPLY | Guest.CREDITED, dot(handle, vector, BYTES, 0))).status());
        }
    }

    @Test
    void shouldDeliverFailureOfCallThatNobodyAwaitsToTheNextWait() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            Product product = new Product(create(guest), guest.allocate(BYTES));
            assertEquals(0, product.call(guest));
            HeapMath.of(rig.gpu()).fail(cublasStatus_t.CUBLAS_STATUS_EXECUTION_FAILED);
            assertEquals(cublasStatus_t.CUBLAS_STATUS_EXECUTION_FAILED, product.call(guest), "the library's own");
            guest.send(CublasOpcodes.cublasSgemm_v2, Guest.CREDITED, product);
            assertEquals(CudaResult.UNKNOWN, guest.call(Guest.CTX_SYNCHRONIZE).status());
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
        }
    }

    @Test
    void shouldCountHandleOnTheQuota() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, 4 * HeapMath.Cublas.HANDLE_BYTES)) {
            Guest guest = rig.guest();
            int status = 0;
            int created = 0;
            while (status == 0 && created < 10) {
                status = guest.call(CublasOpcodes.cublasCreate_v2, guest.newId(HandleKind.CUBLAS)).status();
                created += status == 0 ? 1 : 0;
            }
            assertEquals(cublasStatus_t.CUBLAS_STATUS_ALLOC_FAILED, status);
            assertTrue(created >= 1 && created <= 4, "created=" + created);
        }
    }
}
