package io.hawser.worker.calls;

import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_INVALID_VALUE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cusolver.CusolverOpcodes;
import io.hawser.cuda.generated.cusolver.HwsSolverSparse;
import io.hawser.cuda.generated.cusparse.HwsSparseMatDescr;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.HeapCusolver;
import io.hawser.worker.fixture.HeapMath;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Sparse systems of cuSOLVER. */
@Timeout(300)
class CusolverSparseTest {
    private static final int ROWS = 8;
    private static final int ELEMENTS = 16;
    private static final long BYTES = 256; // of Z's values, the longest array
    private static final int DESCRIPTION = HwsSolverSparse.BYTES + 8;

    private static long create(Guest guest) throws IOException {
        long handle = guest.newId(HandleKind.CUSOLVER_SP);
        assertEquals(0, guest.call(CusolverOpcodes.cusolverSpCreate, handle).status());
        return handle;
    }

    /** A call of cusolverSpDcsrlsvqr, which a test changes. */
    private static final class Solve implements Consumer<RecordWriter> {
        private final long handle;
        private final long[] addresses; // values, rows, columns, b, x
        private long stream;
        private int m = ROWS;
        private int nnz = ELEMENTS;
        private int type;
        private int base;

        Solve(long handle, long memory) {
            this.handle = handle;
            addresses = new long[] {memory, memory, memory, memory, memory};
        }

        @Override
        public void accept(RecordWriter out) {
            out.fixed(96);
            out.i64(HwsSolverSparse.ID_OFFSET, handle);
            out.i64(HwsSolverSparse.STREAM_OFFSET, stream);
            out.i32(16, m);
            out.i32(20, nnz);
            out.i32(DESCRIPTION + HwsSparseMatDescr.TYPE_OFFSET, type);
            out.i32(DESCRIPTION + HwsSparseMatDescr.INDEX_BASE_OFFSET, base);
            for (int i = 0; i < 4; i++) {
                out.i64(40 + 8L * i, addresses[i]);
            }
            out.f64(72, 1e-9);
            out.i64(88, addresses[4]);
        }

        Guest.Received reply(Guest guest) throws IOException {
            return guest.replyTo(guest.send(CusolverOpcodes.cusolverSpDcsrlsvqr, Guest.REPLY | Guest.CREDITED, this));
        }

        int call(Guest guest) throws IOException {
            return reply(guest).status();
        }
    }

    @Test
    void shouldReturnTheSingularity() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            Guest.Received reply = new Solve(create(guest), guest.allocate(BYTES)).reply(guest);
            assertEquals(0, reply.status());
            reply.fields().begin(Long.BYTES);
            assertEquals(ROWS, reply.i32(0));
        }
    }

    @Test
    void shouldApplyStreamsOnlyWhenTheyChange() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            Solve call = new Solve(create(guest), guest.allocate(BYTES));
            HeapCusolver library = HeapMath.solverOf(rig.gpu());
            assertEquals(0, call.call(guest));
            assertEquals(0, library.appliedSparse()); // the default stream
            call.stream = guest.createStream();
            assertEquals(0, call.call(guest));
            assertEquals(0, call.call(guest));
            assertEquals(1, library.appliedSparse());
        }
    }

    @Test
    void shouldMakeEachDescriptionOfAMatrixOnce() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            Solve call = new Solve(create(guest), guest.allocate(BYTES));
            HeapCusolver library = HeapMath.solverOf(rig.gpu());
            assertEquals(0, call.call(guest));
            long first = library.object();
            call.base = 1;
            assertEquals(0, call.call(guest));
            assertNotEquals(first, library.object());
            call.base = 0;
            assertEquals(0, call.call(guest));
            assertEquals(first, library.object());
            assertEquals(2, library.descriptions());
            call.type = 4;
            guest.send(CusolverOpcodes.cusolverSpDcsrlsvqr, Guest.REPLY | Guest.CREDITED, call);
            assertTrue(guest.reasonOfLoss().contains("description of a matrix"));
        }
    }

    @Test
    void shouldRefuseAddressesOutsideTheSessionsMemory() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long handle = create(guest);
            long memory = guest.allocate(BYTES);
            long[] needed = {ELEMENTS * 8, (ROWS + 1) * 4, ELEMENTS * 4, ROWS * 8, ROWS * 8};
            for (int i = 0; i < needed.length; i++) {
                Solve call = new Solve(handle, memory);
                call.addresses[i] = memory + BYTES - needed[i];
                assertEquals(0, call.call(guest), "array " + i);
                for (long wrong : new long[] {call.addresses[i] + 1, memory - 1, 0, -1, Long.MIN_VALUE}) {
                    call.addresses[i] = wrong;
                    assertEquals(CUSOLVER_STATUS_INVALID_VALUE, call.call(guest), "array " + i + " at " + wrong);
                }
            }
            for (int number : new int[] {1 << 20, Integer.MAX_VALUE, -2, Integer.MIN_VALUE}) {
                Solve call = new Solve(handle, memory);
                call.m = number;
                assertEquals(CUSOLVER_STATUS_INVALID_VALUE, call.call(guest), "m=" + number);
                call = new Solve(handle, memory);
                call.nnz = number;
                assertEquals(CUSOLVER_STATUS_INVALID_VALUE, call.call(guest), "nnz=" + number);
            }
            assertEquals(needed.length, HeapMath.solverOf(rig.gpu()).calls());
        }
    }

    @Test
    void shouldPassComplexNumbersByValue() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long handle = create(guest);
            long memory = guest.allocate(BYTES);
            long sent = guest.send(CusolverOpcodes.cusolverSpZcsreigvsi, Guest.REPLY | Guest.CREDITED, out -> {
                out.fixed(120);
                out.i64(HwsSolverSparse.ID_OFFSET, handle);
                out.i32(16, ROWS);
                out.i32(20, ELEMENTS);
                for (int at : new int[] {40, 48, 56, 80, 104, 112}) {
                    out.i64(at, memory);
                }
                out.f64(64, 2.5);
                out.f64(72, -0.5);
                out.i32(88, 100);
                out.f64(96, 1e-9);
            });
            assertEquals(0, guest.replyTo(sent).status());
            assertEquals(List.of(2.5, -0.5), HeapMath.solverOf(rig.gpu()).shift());
        }
    }

    @Test
    void shouldRefuseHandlesOfDenseSystems() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long dense = guest.newId(HandleKind.CUSOLVER);
            assertEquals(0, guest.call(CusolverOpcodes.cusolverDnCreate, dense).status());
            guest.send(CusolverOpcodes.cusolverSpDcsrlsvqr, Guest.REPLY | Guest.CREDITED,
                new Solve(dense, guest.allocate(BYTES)));
            assertTrue(guest.reasonOfLoss().contains("handle"));
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
            long kept = create(guest);
            assertEquals(0, guest.call(Guest.CONTEXT_DESTROY, other).status());
            guest.send(CusolverOpcodes.cusolverSpDestroy, 0, handle);
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
            guest.send(CusolverOpcodes.cusolverSpDestroy, 0, kept);
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
        }
    }
}
