package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.shm.ledger.Ledger;
import io.hawser.shm.ledger.LedgerLayout;
import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.SharedMemory;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Workers of one vGPU, which share a ledger. */
class LedgerSessionTest {
    private static final int SLOTS = 3;
    private static final int COLUMN = 1;
    private static final long LIMIT = 10_000;
    private static final int OUT_OF_MEMORY = 2;
    private static final String GPU = "00000000-0000-0000-0000-000000000000"; // the UUID of HeapGpu

    private int descriptor;
    private MemorySegment memory;
    private Ledger ledger;

    @BeforeEach
    void makeLedger() throws IOException {
        descriptor = Descriptors.memory("ledger-test", LedgerLayout.bytes(SLOTS));
        memory = SharedMemory.mapWhileReachable(descriptor, LedgerLayout.bytes(SLOTS));
        ledger = new Ledger(memory, SLOTS);
        ledger.limit(COLUMN, LIMIT, LIMIT);
    }

    @AfterEach
    void close() {
        Descriptors.close(descriptor);
    }

    private Rig session(Carrier carrier, int slot) throws IOException {
        Rig rig = new Rig(carrier);
        rig.broker().write(("{\"type\":\"ledger\",\"slots\":" + SLOTS + ",\"slot\":" + slot
            + ",\"gpus\":[\"another\",\"" + GPU + "\"],\"contextBytes\":[7]}").getBytes(StandardCharsets.UTF_8),
            descriptor);
        rig.assign(0);
        rig.guest().next(); // WELCOME
        rig.guest().createContext();
        return rig;
    }

    private static void assertInfo(Guest guest, long free) throws IOException {
        Guest.Received info = guest.call(Guest.MEM_GET_INFO);
        assertEquals(0, info.status());
        assertEquals(free, info.i64(0));
        assertEquals(LIMIT, info.i64(Long.BYTES));
    }

    @ParameterizedTest
    @EnumSource
    void shouldHaveOneQuotaForAllSessions(Carrier carrier) throws IOException {
        try (Rig first = session(carrier, 0); Rig second = session(carrier, 2)) {
            long address = first.guest().allocate(6000);
            assertEquals(6000, ledger.heldBytes(COLUMN, 0));
            assertEquals(OUT_OF_MEMORY, second.guest().call(Guest.MEM_ALLOC, 4001).status());
            assertEquals(6000, ledger.usedBytes(COLUMN), "no other change");
            assertInfo(second.guest(), 4000);
            second.guest().allocate(4000);
            assertInfo(first.guest(), 0);
            assertInfo(second.guest(), 0);
            first.guest().send(Guest.MEM_FREE, 0, address);
            assertEquals(0, first.guest().call(Guest.CTX_SYNCHRONIZE).status());
            assertInfo(second.guest(), 6000);
            assertEquals(4000, ledger.usedBytes(COLUMN));
        }
        assertEquals(0, ledger.usedBytes(COLUMN), "a session that ends gives back");
    }

    @ParameterizedTest
    @EnumSource
    void shouldCountLimitsThatTakeMemoryUnlessTheDriverRefusesThem(Carrier carrier) throws IOException {
        try (Rig rig = session(carrier, 1)) {
            assertEquals(0, rig.guest().call(CudaOpcodes.cuCtxSetLimit, 4, 3000).status());
            assertEquals(3000, ledger.usedBytes(COLUMN), "pending launches of kernels");
            assertEquals(0, rig.guest().call(CudaOpcodes.cuCtxSetLimit, 4, 1000).status());
            assertEquals(3000, ledger.usedBytes(COLUMN), "a driver keeps the memory that it has allocated");
            assertEquals(OUT_OF_MEMORY, rig.guest().call(CudaOpcodes.cuCtxSetLimit, 4, LIMIT + 1).status());
            assertEquals(215, rig.guest().call(CudaOpcodes.cuCtxSetLimit, 3, 2000).status());
            assertEquals(3000, ledger.usedBytes(COLUMN), "a limit that the driver rejects costs nothing");
            rig.guest().allocate(LIMIT - 3000);
        }
        assertEquals(0, ledger.usedBytes(COLUMN));
    }

    @Test
    void shouldApplyLimitThatTheBrokerChanges() throws IOException {
        try (Rig rig = session(Carrier.TCP, 1)) {
            rig.guest().allocate(8000);
            ledger.limit(COLUMN, LIMIT, 5000);
            assertInfo(rig.guest(), 0);
            assertEquals(OUT_OF_MEMORY, rig.guest().call(Guest.MEM_ALLOC, 1).status());
            ledger.limit(COLUMN, LIMIT, 9000);
            rig.guest().allocate(1000);
        }
    }

    @Test
    void shouldNotWaitForALockOfAWorkerThatIsGone() throws IOException {
        memory.set(ValueLayout.JAVA_LONG, 0, 9L << 16 | 1);
        try (Rig rig = session(Carrier.TCP, 1)) {
            rig.guest().allocate(8000);
            assertEquals(OUT_OF_MEMORY, rig.guest().call(Guest.MEM_ALLOC, 2001).status());
            rig.guest().allocate(2000);
        }
        assertEquals(9L << 16 | 1, memory.get(ValueLayout.JAVA_LONG, 0));
    }

    @Test
    void shouldEndWhenTheLedgerHasNoColumnForAGpu() throws IOException {
        try (Rig rig = new Rig(Carrier.TCP)) {
            rig.broker().write("{\"type\":\"ledger\",\"slots\":3,\"slot\":0,\"gpus\":[\"another\"]}"
                .getBytes(StandardCharsets.UTF_8), descriptor);
            assertEquals(true, rig.expect("ended").path("error").asBoolean());
        }
    }
}
