package io.hawser.worker.calls;

import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_ALLOC_FAILED;
import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_EXEC_FAILED;
import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_INVALID_DEVICE;
import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_INVALID_PLAN;
import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_INVALID_SIZE;
import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_INVALID_TYPE;
import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_INVALID_VALUE;
import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_NO_WORKSPACE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cufft.CufftOpcodes;
import io.hawser.cuda.generated.cufft.HwsFftExec;
import io.hawser.cuda.generated.cufft.HwsFftFunction;
import io.hawser.cuda.generated.cufft.HwsFftPlan;
import io.hawser.cuda.generated.cufft.cufftType;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.HeapCufft;
import io.hawser.worker.fixture.HeapMath;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.session.CudaResult;
import java.io.IOException;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class CufftCallsTest {
    private static final int N = 64;
    private static final int REAL_BYTES = N * Float.BYTES;
    private static final int HALF_BYTES = (N / 2 + 1) * 2 * Float.BYTES;
    private static final int CONTENT = 8; // after the plan's id
    private static final int PLAN_BYTES = CONTENT + HwsFftPlan.BYTES + 8;

    private static void content(RecordWriter out, int at, int type, long n) {
        out.i32(at + HwsFftPlan.FUNCTION_OFFSET, HwsFftFunction.HWS_FFT_1D);
        out.i32(at + HwsFftPlan.RANK_OFFSET, 1);
        out.i32(at + HwsFftPlan.TYPE_OFFSET, type);
        out.i64(at + HwsFftPlan.N_OFFSET, n);
        out.i64(at + HwsFftPlan.BATCH_OFFSET, 1);
    }

    private static Guest.Received make(Guest guest, long id, int type, long n, boolean hasArea) throws IOException {
        return guest.call(CufftOpcodes.hwsFftMakePlan, out -> {
            out.fixed(PLAN_BYTES);
            out.i64(0, id);
            content(out, CONTENT, type, n);
            out.i32(CONTENT + HwsFftPlan.BYTES, hasArea ? 1 : 0);
        });
    }

    private static long plan(Guest guest, int type, boolean hasArea) throws IOException {
        long id = guest.newId(HandleKind.CUFFT);
        Guest.Received made = make(guest, id, type, N, hasArea);
        assertEquals(0, made.status());
        assertEquals(HeapCufft.WORK_BYTES, made.i64(0));
        return id;
    }

    /** An execution, which a test changes. */
    private static final class Execution implements Consumer<RecordWriter> {
        private final long plan;
        private final long input;
        private final long output;
        private long stream;
        private long workArea;
        private int type;

        Execution(long plan, long input, long output) {
            this.plan = plan;
            this.input = input;
            this.output = output;
        }

        @Override
        public void accept(RecordWriter out) {
            out.fixed(HwsFftExec.BYTES + 16);
            out.i64(HwsFftExec.PLAN_OFFSET, plan);
            out.i64(HwsFftExec.STREAM_OFFSET, stream);
            out.i64(HwsFftExec.WORK_AREA_OFFSET, workArea);
            out.i32(HwsFftExec.TYPE_OFFSET, type);
            out.i64(HwsFftExec.BYTES, input);
            out.i64(HwsFftExec.BYTES + 8, output);
        }

        int call(Guest guest) throws IOException {
            return guest.replyTo(guest.send(CufftOpcodes.hwsFftExec, Guest.REPLY | Guest.CREDITED, this)).status();
        }
    }

    @Test
    void shouldOpenLibraryAtTheFirstCallOnly() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            guest.allocate(N);
            assertNull(HeapMath.fftOf(rig.gpu()));
            long plan = plan(guest, cufftType.CUFFT_C2C, true);
            assertEquals(1, HeapMath.fftOf(rig.gpu()).plans());
            guest.send(CufftOpcodes.hwsFftDestroy, 0, plan);
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
            assertEquals(0, HeapMath.fftOf(rig.gpu()).plans());
            assertEquals(CUFFT_INVALID_PLAN, new Execution(plan, 0, 0).call(guest));
        }
    }

    @Test
    void shouldRefuseExecutionOutsideTheSessionsMemory() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long plan = plan(guest, cufftType.CUFFT_R2C, true);
            long real = guest.allocate(REAL_BYTES);
            long half = guest.allocate(HALF_BYTES);
            assertEquals(0, new Execution(plan, real, half).call(guest));
            for (long wrong : new long[] {0, -1, 8, Long.MIN_VALUE}) {
                assertEquals(CUFFT_INVALID_VALUE, new Execution(plan, wrong, half).call(guest));
                assertEquals(CUFFT_INVALID_VALUE, new Execution(plan, real, wrong).call(guest));
            }
            assertEquals(CUFFT_INVALID_VALUE, new Execution(plan, real + Float.BYTES, half).call(guest));
            assertEquals(CUFFT_INVALID_VALUE, new Execution(plan, real, half + Float.BYTES).call(guest));
            assertEquals(0, new Execution(plan, half, half).call(guest), "in place");
            assertEquals(1 + 1, HeapMath.fftOf(rig.gpu()).runs());
        }
    }

    @Test
    void shouldNeedPaddedRowsForRealNumbersInPlace() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, 1L << 30)) {
            Guest guest = rig.guest();
            long plan = plan(guest, cufftType.CUFFT_R2C, true);
            long real = guest.allocate(REAL_BYTES);
            assertEquals(CUFFT_INVALID_VALUE, new Execution(plan, real, real).call(guest));
        }
    }

    @Test
    void shouldCheckTheWorkAreaOfTheProgram() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long plan = plan(guest, cufftType.CUFFT_C2C, false);
            long data = guest.allocate(2L * REAL_BYTES);
            Execution execution = new Execution(plan, data, data);
            assertEquals(CUFFT_NO_WORKSPACE, execution.call(guest));
            execution.workArea = guest.allocate(HeapCufft.WORK_BYTES);
            assertEquals(0, execution.call(guest));
            assertEquals(execution.workArea, HeapMath.fftOf(rig.gpu()).area());
            execution.workArea += 256;
            assertEquals(CUFFT_INVALID_VALUE, execution.call(guest));
            assertEquals(1, HeapMath.fftOf(rig.gpu()).runs());
        }
    }

    @Test
    void shouldReturnToItsOwnWorkArea() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            Execution execution = new Execution(plan(guest, cufftType.CUFFT_C2C, true),
                guest.allocate(2L * REAL_BYTES), 0);
            execution = new Execution(execution.plan, execution.input, execution.input);
            HeapCufft library = HeapMath.fftOf(rig.gpu());
            long own = library.area();
            assertTrue(own != 0);
            execution.workArea = guest.allocate(HeapCufft.WORK_BYTES);
            assertEquals(0, execution.call(guest));
            assertEquals(execution.workArea, library.area());
            execution.workArea = 0;
            assertEquals(0, execution.call(guest));
            assertEquals(own, library.area());
        }
    }

    @Test
    void shouldSetTheStreamOnlyWhenItHasChanged() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long data = guest.allocate(2L * REAL_BYTES);
            Execution execution = new Execution(plan(guest, cufftType.CUFFT_C2C, true), data, data);
            execution.stream = guest.createStream();
            for (int i = 0; i < 3; i++) {
                assertEquals(0, execution.call(guest));
            }
            assertEquals(1, HeapMath.fftOf(rig.gpu()).streams());
        }
    }

    @Test
    void shouldRefuseFunctionOfAnotherType() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long data = guest.allocate(2L * REAL_BYTES);
            Execution execution = new Execution(plan(guest, cufftType.CUFFT_C2C, true), data, data);
            for (int type : new int[] {cufftType.CUFFT_R2C, cufftType.CUFFT_Z2Z, 1, -1}) {
                execution.type = type;
                assertEquals(CUFFT_INVALID_TYPE, execution.call(guest));
            }
            execution.type = cufftType.CUFFT_C2C;
            assertEquals(0, execution.call(guest));
        }
    }

    @Test
    void shouldRefusePlanOfAnotherContext() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long plan = plan(guest, cufftType.CUFFT_C2C, true);
            long data = guest.allocate(2L * REAL_BYTES);
            long first = guest.context();
            long other = guest.newId(HandleKind.CONTEXT);
            assertEquals(0, guest.call(Guest.CONTEXT_CREATE, other, 0, 0).status());
            guest.useContext(other);
            assertEquals(CUFFT_INVALID_DEVICE, new Execution(plan, data, data).call(guest));
            guest.useContext(first);
            assertEquals(0, new Execution(plan, data, data).call(guest));
        }
    }

    @Test
    void shouldAcceptTheEndOfPlanWhoseContextHasEnded() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long first = guest.context();
            long other = guest.newId(HandleKind.CONTEXT);
            assertEquals(0, guest.call(Guest.CONTEXT_CREATE, other, 0, 0).status());
            guest.useContext(other);
            long plan = plan(guest, cufftType.CUFFT_C2C, true);
            guest.useContext(first);
            assertEquals(0, guest.call(Guest.CONTEXT_DESTROY, other).status());
            guest.send(CufftOpcodes.hwsFftDestroy, 0, plan);
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
            long data = guest.allocate(2L * REAL_BYTES);
            assertEquals(CUFFT_INVALID_PLAN, new Execution(plan, data, data).call(guest));
        }
    }

    @Test
    void shouldGiveTheLibraryNoImpossiblePlan() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            for (long n : new long[] {0, -1, 1L << 31, 1L << 40}) {
                assertEquals(CUFFT_INVALID_SIZE,
                    make(guest, guest.newId(HandleKind.CUFFT), cufftType.CUFFT_C2C, n, true).status());
                assertEquals(CUFFT_INVALID_SIZE, guest.call(CufftOpcodes.hwsFftGetSize, out -> {
                    out.fixed(HwsFftPlan.BYTES + 8);
                    content(out, 0, cufftType.CUFFT_C2C, n);
                }).status());
            }
            assertEquals(0, HeapMath.fftOf(rig.gpu()).plans());
            assertEquals(0, HeapMath.fftOf(rig.gpu()).sizes());
        }
    }

    @Test
    void shouldCountWorkAreasOnTheQuota() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, 4 * HeapCufft.WORK_BYTES)) {
            Guest guest = rig.guest();
            long last = 0;
            int made = 0;
            int status = 0;
            while (status == 0 && made < 10) {
                long id = guest.newId(HandleKind.CUFFT);
                status = make(guest, id, cufftType.CUFFT_C2C, N, true).status();
                made += status == 0 ? 1 : 0;
                last = status == 0 ? id : last;
            }
            assertEquals(CUFFT_ALLOC_FAILED, status);
            assertTrue(made >= 1 && made < 4, "made=" + made);
            assertEquals(made, HeapMath.fftOf(rig.gpu()).plans(), "a refused plan must not stay");
            guest.send(CufftOpcodes.hwsFftDestroy, 0, last);
            assertEquals(0, make(guest, guest.newId(HandleKind.CUFFT), cufftType.CUFFT_C2C, N, true).status());
            assertEquals(0, make(guest, guest.newId(HandleKind.CUFFT), cufftType.CUFFT_C2C, N, false).status());
        }
    }

    @Test
    void shouldBoundThePlansOfASession() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            for (int i = 0; i < CufftCalls.MAX_PLANS; i++) {
                assertEquals(0, make(guest, guest.newId(HandleKind.CUFFT), cufftType.CUFFT_C2C, N, false).status());
            }
            assertEquals(CUFFT_ALLOC_FAILED,
                make(guest, guest.newId(HandleKind.CUFFT), cufftType.CUFFT_C2C, N, false).status());
        }
    }

    @Test
    void shouldEndSessionForPlanThatWasNeverMade() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            long data = rig.guest().allocate(2L * REAL_BYTES);
            rig.guest().send(CufftOpcodes.hwsFftExec, Guest.CREDITED,
                new Execution(rig.guest().newId(HandleKind.CUFFT), data, data));
            assertTrue(rig.guest().reasonOfLoss().contains("handle"));
        }
    }

    @Test
    void shouldDeliverFailureOfExecutionThatNobodyAwaitsToTheNextWait() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long data = guest.allocate(2L * REAL_BYTES);
            Execution execution = new Execution(plan(guest, cufftType.CUFFT_C2C, true), data, data);
            HeapMath.fftOf(rig.gpu()).fail(CUFFT_EXEC_FAILED);
            assertEquals(CUFFT_EXEC_FAILED, execution.call(guest));
            guest.send(CufftOpcodes.hwsFftExec, Guest.CREDITED, execution);
            assertEquals(CudaResult.UNKNOWN, guest.call(Guest.CTX_SYNCHRONIZE).status());
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
        }
    }
}
