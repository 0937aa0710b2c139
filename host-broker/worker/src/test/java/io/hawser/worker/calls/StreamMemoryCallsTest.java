package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HwsTensorMap;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.session.CudaResult;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class StreamMemoryCallsTest {
    private static final int WAIT_32 = 1;
    private static final int WRITE_32 = 2;
    private static final int WRITE_64 = 5;
    private static final int BARRIER = 6;

    private static byte[] operation(int type, int flags, long address) {
        return ByteBuffer.allocate(24).order(ByteOrder.LITTLE_ENDIAN).putInt(type).putInt(flags).putLong(address)
            .putLong(1).array();
    }

    private static void send(Guest guest, byte[] operations) throws IOException {
        guest.send(CudaOpcodes.hwsStreamMemOps, Guest.CREDITED, out -> {
            out.fixed(16);
            out.i64(0, 0);
            out.i32(8, operations.length);
            out.buffer(12, MemorySegment.ofArray(operations));
        });
    }

    private static int resultOf(byte[] operations) throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            send(rig.guest(), operations);
            return rig.guest().call(Guest.CTX_SYNCHRONIZE).status();
        }
    }

    @Test
    void shouldRefuseMemoryThatIsNotTheSessions() throws IOException {
        assertEquals(CudaResult.INVALID_VALUE, resultOf(operation(WRITE_32, 0, 0x1000)));
        assertEquals(CudaResult.INVALID_VALUE, resultOf(operation(WAIT_32, 0, -4)));
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long address = guest.call(Guest.MEM_ALLOC, 64).i64(0);
            send(guest, operation(WRITE_64, 0, address + 60));
            assertEquals(CudaResult.INVALID_VALUE, guest.call(Guest.CTX_SYNCHRONIZE).status());
            send(guest, operation(WRITE_32, 0, address + 60));
            assertEquals(CudaResult.NOT_SUPPORTED, guest.call(Guest.CTX_SYNCHRONIZE).status(), "the backend's answer");
        }
    }

    @FunctionalInterface
    private interface Attack {
        void on(Guest guest) throws IOException;
    }

    private static void refuse(String reason, Attack attack) throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            attack.on(rig.guest());
            String told = rig.guest().reasonOfLoss();
            assertTrue(told.contains(reason), () -> "expected: " + reason + " told: " + told);
        }
    }

    @Test
    void shouldEndSessionOfInvalidOperation() throws IOException {
        refuse("operations must be complete", guest -> send(guest, new byte[0]));
        refuse("operations must be complete", guest -> send(guest, new byte[23]));
        refuse("operations must be complete", guest -> send(guest, Arrays.copyOf(operation(BARRIER, 0, 0), 32)));
        refuse("a type and flags of CUDA", guest -> send(guest, operation(0, 0, 0)));
        refuse("a type and flags of CUDA", guest -> send(guest, operation(7, 0, 0)));
        refuse("a type and flags of CUDA", guest -> send(guest, operation(WRITE_32, 2, 0)));
        refuse("a type and flags of CUDA", guest -> send(guest, operation(WAIT_32, 4, 0)));
        refuse("a kind and a rank", guest -> tensorMap(guest, 4, 2, 0));
        refuse("a kind and a rank", guest -> tensorMap(guest, 0, 6, 0));
        refuse("a kind and a rank", guest -> tensorMap(guest, 0, 0, 0));
    }

    private static Guest.Received tensorMap(Guest guest, int kind, int rank, long address) throws IOException {
        MemorySegment params = MemorySegment.ofArray(new byte[HwsTensorMap.BYTES]);
        params.set(ValueLayout.JAVA_INT_UNALIGNED, HwsTensorMap.KIND_OFFSET, kind);
        params.set(ValueLayout.JAVA_INT_UNALIGNED, HwsTensorMap.RANK_OFFSET, rank);
        params.set(ValueLayout.JAVA_LONG_UNALIGNED, HwsTensorMap.ADDRESS_OFFSET, address);
        long request = guest.send(CudaOpcodes.hwsTensorMapEncode, Guest.REPLY, out -> {
            out.fixed(HwsTensorMap.BYTES);
            out.struct(0, params, 0, HwsTensorMap.BYTES);
        });
        return kind > 3 || rank < 1 || rank > 5 ? null : guest.replyTo(request);
    }

    @Test
    void shouldCheckTheAddressOfATensor() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long address = guest.call(Guest.MEM_ALLOC, 64).i64(0);
            assertEquals(CudaResult.INVALID_VALUE, tensorMap(guest, 0, 2, address + 64).status());
            assertEquals(CudaResult.NOT_SUPPORTED, tensorMap(guest, 0, 2, 0).status(), "its address comes later");
            assertEquals(CudaResult.NOT_SUPPORTED, tensorMap(guest, 3, 2, 16).status(), "CUDA takes any later address");
            assertEquals(CudaResult.NOT_SUPPORTED, tensorMap(guest, 0, 2, address).status(), "the backend's answer");
        }
    }
}
