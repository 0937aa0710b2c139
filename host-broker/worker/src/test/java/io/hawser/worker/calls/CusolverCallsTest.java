package io.hawser.worker.calls;

import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_ALLOC_FAILED;
import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_INVALID_VALUE;
import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_NOT_INITIALIZED;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cusolver.CusolverOpcodes;
import io.hawser.cuda.generated.cusolver.HwsSolverHandle;
import io.hawser.cuda.generated.cusolver.HwsSolverJacobi;
import io.hawser.cuda.generated.cusolver.HwsSolverParams;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.HeapCusolver;
import io.hawser.worker.fixture.HeapMath;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class CusolverCallsTest {
    private static final int N = 16;
    private static final int BYTES = N * N * Float.BYTES;
    private static final int AFTER_HANDLE = HwsSolverHandle.BYTES;

    private static long create(Guest guest) throws IOException {
        long handle = guest.newId(HandleKind.CUSOLVER);
        assertEquals(0, guest.call(CusolverOpcodes.cusolverDnCreate, handle).status());
        return handle;
    }

    private static int call(Guest guest, int opcode, Consumer<RecordWriter> record) throws IOException {
        return guest.replyTo(guest.send(opcode, Guest.REPLY | Guest.CREDITED, record)).status();
    }

    /** A call of cusolverDnSpotrf, which a test changes. */
    private static final class Potrf implements Consumer<RecordWriter> {
        private final long handle;
        private long matrix;
        private long work;
        private long info;
        private long stream;
        private int n = N;
        private int lda = N;
        private int lwork = N;

        Potrf(long handle, long memory) {
            this.handle = handle;
            matrix = memory;
            work = memory;
            info = memory;
        }

        @Override
        public void accept(RecordWriter out) {
            out.fixed(80);
            out.i64(HwsSolverHandle.ID_OFFSET, handle);
            out.i64(HwsSolverHandle.STREAM_OFFSET, stream);
            out.i32(36, n);
            out.i64(40, matrix);
            out.i32(48, lda);
            out.i64(56, work);
            out.i32(64, lwork);
            out.i64(72, info);
        }

        int call(Guest guest) throws IOException {
            return CusolverCallsTest.call(guest, CusolverOpcodes.cusolverDnSpotrf, this);
        }
    }

    /** A call of cusolverDnSsyevj with settings, which a test changes. */
    private static final class Syevj implements Consumer<RecordWriter> {
        private final long handle;
        private final long memory;
        private long id = 1;
        private int isGesvdj;
        private int sweeps = 20;

        Syevj(long handle, long memory) {
            this.handle = handle;
            this.memory = memory;
        }

        @Override
        public void accept(RecordWriter out) {
            int settings = 96;
            out.fixed(settings + HwsSolverJacobi.BYTES);
            out.i64(HwsSolverHandle.ID_OFFSET, handle);
            out.i32(40, N);
            out.i64(48, memory);
            out.i32(56, N);
            out.i64(64, memory);
            out.i64(72, memory);
            out.i32(80, N);
            out.i64(88, memory);
            out.i64(settings + HwsSolverJacobi.ID_OFFSET, id);
            out.i32(settings + HwsSolverJacobi.IS_GESVDJ_OFFSET, isGesvdj);
            out.i32(settings + HwsSolverJacobi.GIVEN_OFFSET, 2);
            out.i32(settings + HwsSolverJacobi.MAX_SWEEPS_OFFSET, sweeps);
        }

        int call(Guest guest) throws IOException {
            return CusolverCallsTest.call(guest, CusolverOpcodes.cusolverDnSsyevj, this);
        }
    }

    /** A call of cusolverDnXpotrf, which a test changes. */
    private static final class Generic implements Consumer<RecordWriter> {
        private final long handle;
        private final long memory;
        private int isNull;
        private int algorithm = -1;
        private long hostBytes;

        Generic(long handle, long memory) {
            this.handle = handle;
            this.memory = memory;
        }

        @Override
        public void accept(RecordWriter out) {
            out.fixed(128);
            out.i64(HwsSolverHandle.ID_OFFSET, handle);
            out.i32(AFTER_HANDLE + HwsSolverParams.IS_NULL_OFFSET, isNull);
            for (int i = 0; i < 3; i++) {
                out.i32(AFTER_HANDLE + HwsSolverParams.ALGORITHMS_OFFSET + i * Integer.BYTES, algorithm);
            }
            out.i64(56, N);
            out.i64(72, memory);
            out.i64(80, N);
            out.i64(96, memory);
            out.i64(104, N);
            out.i64(112, hostBytes);
            out.i64(120, memory);
        }

        int call(Guest guest) throws IOException {
            return CusolverCallsTest.call(guest, CusolverOpcodes.cusolverDnXpotrf, this);
        }
    }

    @Test
    void shouldOpenLibraryAtTheFirstCallOnly() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(BYTES);
            assertNull(HeapMath.solverOf(rig.gpu()));
            long handle = create(guest);
            assertEquals(1, HeapMath.solverOf(rig.gpu()).handles());
            guest.send(CusolverOpcodes.cusolverDnDestroy, 0, handle);
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
            assertEquals(0, HeapMath.solverOf(rig.gpu()).handles());
            assertEquals(CUSOLVER_STATUS_NOT_INITIALIZED, new Potrf(handle, memory).call(guest));
        }
    }

    @Test
    void shouldAcceptTheEndOfHandlesWhoseContextHasEnded() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long first = guest.context();
            long other = guest.newId(HandleKind.CONTEXT);
            assertEquals(0, guest.call(Guest.CONTEXT_CREATE, other, 0, 0).status());
            guest.useContext(other);
            long handle = create(guest);
            guest.useContext(first);
            assertEquals(0, guest.call(Guest.CONTEXT_DESTROY, other).status());
            guest.send(CusolverOpcodes.cusolverDnDestroy, 0, handle);
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
        }
    }

    @Test
    void shouldGiveTheLibraryStateOnlyWhenItHasChanged() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            Potrf call = new Potrf(create(guest), guest.allocate(BYTES));
            for (int i = 0; i < 3; i++) {
                assertEquals(0, call.call(guest));
            }
            HeapCusolver library = HeapMath.solverOf(rig.gpu());
            assertEquals(1, library.applied());
            call.stream = guest.createStream();
            assertEquals(0, call.call(guest));
            assertEquals(2, library.applied());
            assertEquals(4, library.calls());
        }
    }

    @Test
    void shouldRefuseAddressesOutsideTheSessionsMemory() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long handle = create(guest);
            long memory = guest.allocate(BYTES);
            for (long address : new long[] {memory + Float.BYTES, memory - 1, 0, -1, Long.MIN_VALUE}) {
                Potrf call = new Potrf(handle, memory);
                call.matrix = address;
                assertEquals(CUSOLVER_STATUS_INVALID_VALUE, call.call(guest), "matrix=" + address);
            }
            for (int number : new int[] {N + 1, Integer.MAX_VALUE, -1, Integer.MIN_VALUE}) {
                Potrf call = new Potrf(handle, memory);
                call.n = number;
                assertEquals(CUSOLVER_STATUS_INVALID_VALUE, call.call(guest), "n=" + number);
                call = new Potrf(handle, memory);
                call.lda = number;
                assertEquals(CUSOLVER_STATUS_INVALID_VALUE, call.call(guest), "lda=" + number);
                call = new Potrf(handle, memory);
                call.lwork = number == N + 1 ? N * N + 1 : number;
                assertEquals(CUSOLVER_STATUS_INVALID_VALUE, call.call(guest), "lwork=" + number);
            }
            Potrf call = new Potrf(handle, memory);
            call.info = memory + BYTES - 3;
            assertEquals(CUSOLVER_STATUS_INVALID_VALUE, call.call(guest));
            assertEquals(0, HeapMath.solverOf(rig.gpu()).calls());
        }
    }

    @Test
    void shouldEndTheSessionForHandleOfAnotherKind() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            create(guest);
            guest.send(CusolverOpcodes.cusolverDnSpotrf, Guest.REPLY | Guest.CREDITED,
                new Potrf(guest.createStream(), guest.allocate(BYTES)));
            assertTrue(guest.reasonOfLoss().contains("handle"));
        }
    }

    @Test
    void shouldMakeObjectOfJacobisMethodWhenACallNamesIt() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            Syevj call = new Syevj(create(guest), guest.allocate(BYTES));
            HeapCusolver library = HeapMath.solverOf(rig.gpu());
            assertEquals(0, call.call(guest));
            long first = library.object();
            assertEquals(0, call.call(guest));
            assertEquals(first, library.object());
            assertEquals(1, library.configured());
            call.sweeps = 30;
            assertEquals(0, call.call(guest));
            assertEquals(30, library.sweeps());
            assertEquals(1, library.jacobis());
            call.id = 2;
            assertEquals(0, call.call(guest));
            assertNotEquals(first, library.object());
            call.id = 0; // NULL
            assertEquals(0, call.call(guest));
            assertEquals(0, library.object());
            for (long id : new long[] {1, 2, 2, 77, -1}) { // unknown ones, too
                guest.send(CusolverOpcodes.hwsSolverForget, 0, id);
            }
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
            assertEquals(0, library.jacobis());
        }
    }

    @Test
    void shouldEndTheSessionForObjectOfAnotherFunction() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            Syevj call = new Syevj(create(guest), guest.allocate(BYTES));
            call.isGesvdj = 1;
            guest.send(CusolverOpcodes.cusolverDnSsyevj, Guest.REPLY | Guest.CREDITED, call);
            assertTrue(guest.reasonOfLoss().contains("Jacobi"));
        }
    }

    @Test
    void shouldMakeOneObjectForEachChoiceOfAlgorithms() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            Generic call = new Generic(create(guest), guest.allocate(BYTES));
            HeapCusolver library = HeapMath.solverOf(rig.gpu());
            for (int algorithm : new int[] {-1, 0, -1, 0, 2}) {
                call.algorithm = algorithm;
                assertEquals(0, call.call(guest));
            }
            assertEquals(3, library.params());
            call.isNull = 1;
            assertEquals(0, call.call(guest));
            assertEquals(0, library.object());
            call.isNull = 0;
            call.algorithm = 3;
            guest.send(CusolverOpcodes.cusolverDnXpotrf, Guest.REPLY | Guest.CREDITED, call);
            assertTrue(guest.reasonOfLoss().contains("algorithm"));
        }
    }

    @Test
    void shouldGiveTheLibraryHostMemoryOfTheWorker() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            Generic call = new Generic(create(guest), guest.allocate(BYTES));
            HeapCusolver library = HeapMath.solverOf(rig.gpu());
            assertEquals(0, call.call(guest));
            assertEquals(0, library.workspace().address());
            call.hostBytes = 1000;
            assertEquals(0, call.call(guest));
            long first = library.workspace().address();
            assertTrue(library.workspace().byteSize() >= 1000);
            call.hostBytes = 500;
            assertEquals(0, call.call(guest));
            assertEquals(first, library.workspace().address());
            call.hostBytes = 100_000;
            assertEquals(0, call.call(guest));
            assertTrue(library.workspace().byteSize() >= 100_000);
            for (long bytes : new long[] {1L << 31, Long.MAX_VALUE, -1}) {
                call.hostBytes = bytes;
                assertEquals(CUSOLVER_STATUS_ALLOC_FAILED, call.call(guest), "hostBytes=" + bytes);
            }
        }
    }
}
