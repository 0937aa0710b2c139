package io.hawser.worker.calls;

import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_ALLOCATION_FAILED;
import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_INITIALIZATION_FAILED;
import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_LAUNCH_FAILURE;
import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_NOT_INITIALIZED;
import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_OUT_OF_RANGE;
import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_TYPE_ERROR;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.curand.CurandOpcodes;
import io.hawser.cuda.generated.curand.HwsRandFunction;
import io.hawser.cuda.generated.curand.HwsRandSetting;
import io.hawser.cuda.generated.curand.HwsRandTable;
import io.hawser.cuda.generated.curand.HwsRandWork;
import io.hawser.cuda.generated.curand.curandDirectionVectorSet_t;
import io.hawser.cuda.generated.curand.curandRngType_t;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.HeapCurand;
import io.hawser.worker.fixture.HeapMath;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.session.CudaResult;
import java.io.IOException;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class CurandCallsTest {
    private static final int COUNT = 1000;
    private static final long BYTES = COUNT * (long) Integer.BYTES;

    private static Guest.Received create(Guest guest, long id, boolean isHost) throws IOException {
        return guest.call(CurandOpcodes.hwsRandCreate, out -> {
            out.fixed(16);
            out.i64(0, id);
            out.i32(8, curandRngType_t.CURAND_RNG_PSEUDO_PHILOX4_32_10);
            out.i32(12, isHost ? 1 : 0);
        });
    }

    private static long generator(Guest guest, boolean isHost) throws IOException {
        long id = guest.newId(HandleKind.CURAND);
        assertEquals(0, create(guest, id, isHost).status());
        return id;
    }

    /** A call that generates, which a test changes. */
    private static final class Work implements Consumer<RecordWriter> {
        private final long generator;
        private final boolean isHost;
        private long output;
        private long stream;
        private long count = COUNT;
        private int function = HwsRandFunction.HWS_RAND_BITS;
        private int changed;

        Work(long generator, long output) {
            this.generator = generator;
            this.output = output;
            isHost = output == 0;
            stream = isHost ? -1 : 0;
        }

        @Override
        public void accept(RecordWriter out) {
            out.fixed(HwsRandWork.BYTES + (isHost ? 0 : Long.BYTES));
            out.i64(HwsRandWork.GENERATOR_OFFSET, generator);
            out.i64(HwsRandWork.STREAM_OFFSET, stream);
            out.i64(HwsRandWork.COUNT_OFFSET, count);
            for (int i = 0; i < HwsRandSetting.HWS_RAND_SETTINGS; i++) {
                out.i64(HwsRandWork.SETTINGS_OFFSET + Long.BYTES * i, 100 + i);
            }
            out.i32(HwsRandWork.FUNCTION_OFFSET, function);
            out.i32(HwsRandWork.CHANGED_OFFSET, changed);
            if (!isHost) {
                out.i64(HwsRandWork.BYTES, output);
            }
        }

        int call(Guest guest) throws IOException {
            return isHost ? guest.call(CurandOpcodes.hwsRandGenerateHost, this).status()
                : guest.replyTo(guest.send(CurandOpcodes.hwsRandGenerate, Guest.REPLY | Guest.CREDITED, this)).status();
        }
    }

    private static Guest.Received part(Guest guest, long generator, long offset, long bytes) throws IOException {
        return guest.call(CurandOpcodes.hwsRandRead, generator, offset, bytes);
    }

    private static Guest.Received tablePart(Guest guest, int table, long offset, long bytes) throws IOException {
        return guest.call(CurandOpcodes.hwsRandTablePart, out -> {
            out.fixed(24);
            out.i32(0, table);
            out.i32(4, curandDirectionVectorSet_t.CURAND_DIRECTION_VECTORS_32_JOEKUO6);
            out.i64(8, offset);
            out.i64(16, bytes);
        });
    }

    @Test
    void shouldOpenLibraryAtTheFirstCallOnly() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            guest.allocate(64);
            assertNull(HeapMath.randOf(rig.gpu()));
            long generator = generator(guest, false);
            assertEquals(1, HeapMath.randOf(rig.gpu()).generators());
            guest.send(CurandOpcodes.hwsRandDestroy, 0, generator);
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
            assertEquals(0, HeapMath.randOf(rig.gpu()).generators());
            assertEquals(CURAND_STATUS_NOT_INITIALIZED, new Work(generator, guest.allocate(BYTES)).call(guest));
        }
    }

    @Test
    void shouldRefuseNumbersOutsideTheSessionsMemory() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long output = guest.allocate(BYTES);
            Work work = new Work(generator(guest, false), output);
            assertEquals(0, work.call(guest));
            for (long wrong : new long[] {-1, 8, Long.MIN_VALUE, output + 4}) {
                work.output = wrong;
                assertEquals(CURAND_STATUS_OUT_OF_RANGE, work.call(guest));
            }
            work.output = output;
            work.function = HwsRandFunction.HWS_RAND_UNIFORM_DOUBLE;
            assertEquals(CURAND_STATUS_OUT_OF_RANGE, work.call(guest), "twice the bytes");
            work.count = COUNT / 2;
            assertEquals(0, work.call(guest));
            for (long wrong : new long[] {-1, Long.MIN_VALUE, Long.MAX_VALUE, Long.MAX_VALUE / 8 + 1, 1L << 62}) {
                work.count = wrong;
                assertEquals(CURAND_STATUS_OUT_OF_RANGE, work.call(guest));
            }
            work.count = 1;
            for (int wrong : new int[] {-1, HwsRandFunction.HWS_RAND_POISSON_METHOD + 1, Integer.MAX_VALUE}) {
                work.function = wrong;
                assertEquals(CURAND_STATUS_OUT_OF_RANGE, work.call(guest));
            }
            work.function = HwsRandFunction.HWS_RAND_SEEDS;
            work.output = -1;
            assertEquals(0, work.call(guest), "no numbers");
            assertEquals(3, HeapMath.randOf(rig.gpu()).runs());
        }
    }

    @Test
    void shouldApplyChangedSettingsAndStreamsOnce() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            Work work = new Work(generator(guest, false), guest.allocate(BYTES));
            assertEquals(0, guest.call(CurandOpcodes.hwsRandSet, out -> {
                out.fixed(24);
                out.i64(0, work.generator);
                out.i32(8, HwsRandSetting.HWS_RAND_DIMENSIONS);
                out.i64(16, 7);
            }).status());
            work.stream = guest.createStream();
            work.changed = 1 << HwsRandSetting.HWS_RAND_SEED | 1 << HwsRandSetting.HWS_RAND_OFFSET | 1 << 31;
            assertEquals(0, work.call(guest));
            work.changed = 0;
            assertEquals(0, work.call(guest));
            HeapCurand library = HeapMath.randOf(rig.gpu());
            assertEquals(List.of("1=7", "2=102", "3=103"), library.settings());
            assertEquals(1, library.streams());
            for (int wrong : new int[] {-1, HwsRandSetting.HWS_RAND_SETTINGS, Integer.MIN_VALUE}) {
                assertEquals(CURAND_STATUS_OUT_OF_RANGE, guest.call(CurandOpcodes.hwsRandSet, out -> {
                    out.fixed(24);
                    out.i64(0, work.generator);
                    out.i32(8, wrong);
                }).status());
            }
        }
    }

    @Test
    void shouldGiveNumbersOfTheHostInParts() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long generator = generator(guest, true);
            Work work = new Work(generator, 0);
            assertEquals(CURAND_STATUS_OUT_OF_RANGE, part(guest, generator, 0, 1).status(), "nothing generated");
            work.count = 30_000;
            assertEquals(0, work.call(guest));
            long bytes = work.count * Integer.BYTES;
            for (long[] wrong : new long[][] {{-1, 1}, {0, -1}, {0, CurandCalls.MAX_PART_BYTES + 1}, {bytes - 3, 4},
                {Long.MAX_VALUE, 1}, {Long.MIN_VALUE, 1}, {bytes + 1, 0}, {0, Long.MIN_VALUE}}) {
                assertEquals(CURAND_STATUS_OUT_OF_RANGE, part(guest, generator, wrong[0], wrong[1]).status());
            }
            long offset = 0;
            while (offset < bytes) {
                int length = (int) Math.min(CurandCalls.MAX_PART_BYTES, bytes - offset);
                Guest.Received received = part(guest, generator, offset, length);
                byte[] numbers = received.buffer(8, 0);
                assertEquals(length, numbers.length);
                for (int i = 0; i < length; i++) {
                    assertEquals((byte) (offset + i), numbers[i]);
                }
                offset += length;
            }
            assertEquals(CURAND_STATUS_OUT_OF_RANGE, part(guest, generator, 0, 1).status(), "all have been read");
            work.count = CurandCalls.MAX_HOST_BYTES / Integer.BYTES + 1;
            assertEquals(CURAND_STATUS_ALLOCATION_FAILED, work.call(guest));
            work.count = -1;
            assertEquals(CURAND_STATUS_OUT_OF_RANGE, work.call(guest));
        }
    }

    @Test
    void shouldKeepHostAndDeviceApart() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            assertEquals(CURAND_STATUS_TYPE_ERROR,
                new Work(generator(guest, true), guest.allocate(BYTES)).call(guest));
            long device = generator(guest, false);
            assertEquals(CURAND_STATUS_TYPE_ERROR, new Work(device, 0).call(guest));
            assertEquals(CURAND_STATUS_OUT_OF_RANGE, part(guest, device, 0, 1).status());
            assertEquals(0, HeapMath.randOf(rig.gpu()).runs());
        }
    }

    @Test
    void shouldGivePartsOfTables() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long bytes = 20_000 * 32 * 4;
            assertEquals(0, tablePart(guest, HwsRandTable.HWS_RAND_DIRECTIONS32, bytes - 4, 4).status());
            byte[] last = tablePart(guest, HwsRandTable.HWS_RAND_DIRECTIONS32, bytes - 4, 4).buffer(8, 0);
            assertEquals((byte) (bytes - 1), last[3]);
            assertEquals(0, tablePart(guest, HwsRandTable.HWS_RAND_DIRECTIONS64, 4 * bytes - 8, 8).status());
            for (long[] wrong : new long[][] {{0, bytes - 3, 4}, {0, -4, 4}, {1, 4 * bytes, 1}, {2, 80_000, 1},
                {3, 159_999, 2}, {0, 0, CurandCalls.MAX_PART_BYTES + 1}, {-1, 0, 4}, {4, 0, 4}}) {
                assertEquals(CURAND_STATUS_OUT_OF_RANGE, tablePart(guest, (int) wrong[0], wrong[1], wrong[2]).status());
            }
        }
    }

    @Test
    void shouldCountGeneratorsOnTheQuota() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, 4 * HeapCurand.GENERATOR_BYTES)) {
            Guest guest = rig.guest();
            int made = 0;
            long last = 0;
            int status = 0;
            while (status == 0 && made < 10) {
                long id = guest.newId(HandleKind.CURAND);
                status = create(guest, id, false).status();
                made += status == 0 ? 1 : 0;
                last = status == 0 ? id : last;
            }
            assertEquals(CURAND_STATUS_ALLOCATION_FAILED, status);
            assertTrue(made >= 1 && made <= 4, "made=" + made);
            assertEquals(made, HeapMath.randOf(rig.gpu()).generators(), "a refused generator must not stay");
            generator(guest, true);
            guest.send(CurandOpcodes.hwsRandDestroy, 0, last);
            generator(guest, false);
        }
    }

    @Test
    void shouldBoundTheGeneratorsOfASession() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            for (int i = 0; i < CurandCalls.MAX_GENERATORS; i++) {
                generator(guest, true);
            }
            assertEquals(CURAND_STATUS_ALLOCATION_FAILED,
                create(guest, guest.newId(HandleKind.CURAND), true).status());
        }
    }

    @Test
    void shouldEndOwnDistributionsOnly() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, 4 * HeapCurand.GENERATOR_BYTES)) {
            Guest guest = rig.guest();
            Guest.Received made = guest.call(CurandOpcodes.hwsRandMakeDistribution, Double.doubleToLongBits(2.5));
            assertEquals(0, made.status());
            for (long wrong : new long[] {0, -1, made.i64(0) + 1}) {
                assertEquals(CURAND_STATUS_NOT_INITIALIZED,
                    guest.call(CurandOpcodes.hwsRandDropDistribution, wrong).status());
            }
            assertEquals(0, guest.call(CurandOpcodes.hwsRandDropDistribution, made.i64(0)).status());
            assertEquals(CURAND_STATUS_NOT_INITIALIZED,
                guest.call(CurandOpcodes.hwsRandDropDistribution, made.i64(0)).status());
            int status = 0;
            for (int i = 0; status == 0 && i < 10; i++) {
                status = guest.call(CurandOpcodes.hwsRandMakeDistribution, 0).status();
            }
            assertEquals(CURAND_STATUS_ALLOCATION_FAILED, status);
            assertTrue(HeapMath.randOf(rig.gpu()).distributions() <= 4);
        }
    }

    @Test
    void shouldRefuseGeneratorOfAnotherContext() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            Work work = new Work(generator(guest, false), guest.allocate(BYTES));
            long first = guest.context();
            long other = guest.newId(HandleKind.CONTEXT);
            assertEquals(0, guest.call(Guest.CONTEXT_CREATE, other, 0, 0).status());
            guest.useContext(other);
            assertEquals(CURAND_STATUS_INITIALIZATION_FAILED, work.call(guest));
            long ended = generator(guest, false);
            guest.useContext(first);
            assertEquals(0, work.call(guest));
            assertEquals(0, guest.call(Guest.CONTEXT_DESTROY, other).status());
            guest.send(CurandOpcodes.hwsRandDestroy, 0, ended);
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
            assertEquals(CURAND_STATUS_NOT_INITIALIZED, new Work(ended, work.output).call(guest));
        }
    }

    @Test
    void shouldEndSessionForGeneratorThatWasNeverMade() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            long output = rig.guest().allocate(BYTES);
            rig.guest().send(CurandOpcodes.hwsRandGenerate, Guest.CREDITED,
                new Work(rig.guest().newId(HandleKind.CURAND), output));
            assertTrue(rig.guest().reasonOfLoss().contains("handle"));
        }
    }

    @Test
    void shouldDeliverFailureThatNobodyAwaitsToTheNextWait() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            Work work = new Work(generator(guest, false), guest.allocate(BYTES));
            HeapMath.randOf(rig.gpu()).fail(CURAND_STATUS_LAUNCH_FAILURE);
            assertEquals(CURAND_STATUS_LAUNCH_FAILURE, work.call(guest));
            guest.send(CurandOpcodes.hwsRandGenerate, Guest.CREDITED, work);
            assertEquals(CudaResult.UNKNOWN, guest.call(Guest.CTX_SYNCHRONIZE).status());
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
        }
    }
}
