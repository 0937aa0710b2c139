package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.session.CudaResult;
import java.io.IOException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class ModuleCallsTest {
    private static final int VARIABLE_BYTES = 16; // struct HwsManagedVariable

    private static Guest.Received list(Guest guest, long module, int first) throws IOException {
        return guest.call(CudaOpcodes.hwsManagedVariables, out -> {
            out.fixed(16);
            out.i64(0, module);
            out.i32(8, first);
        });
    }

    @Test
    void shouldLetTheGuestCopyManagedVariablesOnceListed() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long module = guest.loadImage("managed");
            Guest.Received all = list(guest, module, 0);
            assertEquals(2, all.i32(0));
            assertEquals(2 * VARIABLE_BYTES, all.i32(4));
            long one = all.i64(8);
            long other = all.i64(8 + VARIABLE_BYTES);
            assertEquals(100, all.i64(16));
            assertEquals(4, all.i64(16 + VARIABLE_BYTES));
            guest.write(one, 0, Guest.random(100));
            assertArrayEquals(Guest.random(100), guest.read(one, 100, 0));
            assertEquals(CudaResult.INVALID_VALUE, guest.call(Guest.COPY_DTOH, one, 101, 0).status());
            assertEquals(CudaResult.INVALID_VALUE, guest.call(Guest.COPY_DTOH, other, 5, 0).status());
            assertEquals(CudaResult.INVALID_VALUE, guest.call(Guest.COPY_DTOH, one + 100, 1, 0).status());
            guest.send(Guest.IMAGE_UNLOAD, 0, module);
            assertEquals(CudaResult.INVALID_VALUE, guest.call(Guest.COPY_DTOH, other, 4, 0).status());
        }
    }

    @Test
    void shouldListManagedVariablesFromAnyIndex() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long module = guest.loadImage("managed");
            assertEquals(VARIABLE_BYTES, list(guest, module, 1).i32(4));
            for (int first : new int[] {2, 3, Integer.MAX_VALUE}) {
                assertEquals(0, list(guest, module, first).i32(4));
            }
            assertEquals(2, list(guest, module, -1).i32(0));
            assertEquals(0, list(guest, guest.loadImage("fill"), 0).i32(0));
        }
    }
}
