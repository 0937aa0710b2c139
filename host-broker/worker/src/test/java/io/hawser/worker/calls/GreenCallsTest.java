package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.HeapGreenContexts;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.session.CudaResult;
import java.io.IOException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class GreenCallsTest {
    private static final int MAX_GREEN_CONTEXTS = 256;

    private static int resource(Guest guest, int device, long whole) throws IOException {
        return guest.call(CudaOpcodes.hwsSmResource, out -> {
            out.fixed(16);
            out.i32(0, device);
            out.i64(8, whole);
        }).status();
    }

    private static int create(Guest guest, long id, long primary, long whole) throws IOException {
        return guest.call(CudaOpcodes.hwsGreenContextCreate, out -> {
            out.fixed(48);
            out.i64(0, id);
            out.i64(8, primary);
            out.i64(16, whole);
        }).status();
    }

    private static long green(Guest guest) throws IOException {
        long id = guest.newId(HandleKind.CONTEXT);
        assertEquals(0, create(guest, id, guest.context(), 0));
        return id;
    }

    @Test
    void shouldRefuseDevicesAndContextsThatAreNone() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            for (int device : new int[] {-1, 1, Integer.MAX_VALUE}) {
                assertEquals(CudaResult.INVALID_DEVICE, resource(guest, device, 0), "device=" + device);
            }
            long event = guest.newId(HandleKind.EVENT);
            for (long whole : new long[] {guest.context(), event, 1, -1}) {
                assertEquals(CudaResult.INVALID_CONTEXT, resource(guest, 0, whole), "whole=" + whole);
            }
            long green = green(guest);
            assertEquals(0, resource(guest, 0, green));
            assertEquals(CudaResult.INVALID_CONTEXT, create(guest, guest.newId(HandleKind.CONTEXT), green, 0),
                "a green context is no primary context");
            assertEquals(0, guest.call(CudaOpcodes.hwsContextDestroy, green).status());
            assertEquals(CudaResult.INVALID_CONTEXT, resource(guest, 0, green), "it has ended");
        }
    }

    @Test
    void shouldEndGreenContextsBeforeTheirPrimaryContext() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long green = green(guest);
            long inner = guest.newId(HandleKind.CONTEXT);
            assertEquals(0, create(guest, inner, guest.context(), green));
            HeapGreenContexts greens = rig.gpu().greenContexts();
            assertEquals(2, greens.live());
            assertEquals(0, guest.call(CudaOpcodes.hwsContextDestroy, guest.context()).status());
            assertEquals(0, greens.live());
            assertTrue(greens.isEndedFirst(), "the driver would read freed memory");
            assertEquals(CudaResult.INVALID_CONTEXT, resource(guest, 0, inner));
        }
    }

    @Test
    void shouldLimitGreenContextsOfASession() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            for (int i = 0; i < MAX_GREEN_CONTEXTS; i++) {
                green(guest);
            }
            assertEquals(CudaResult.OUT_OF_MEMORY, create(guest, guest.newId(HandleKind.CONTEXT), guest.context(), 0));
        }
    }
}
