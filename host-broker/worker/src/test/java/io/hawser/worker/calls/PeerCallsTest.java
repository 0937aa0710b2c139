package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.session.CudaResult;
import java.io.IOException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class PeerCallsTest {
    private static int attribute(Guest guest, int device, int peer) throws IOException {
        return guest.call(CudaOpcodes.hwsPeerAttribute, out -> {
            out.fixed(16);
            out.i32(0, device);
            out.i32(4, peer);
            out.i32(8, 1); // CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK
        }).status();
    }

    @Test
    void shouldRefuseDevicesThatTheSessionDoesNotHave() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) { // a session with one device
            assertNotEquals(CudaResult.INVALID_DEVICE, attribute(rig.guest(), 0, 0));
            for (int number : new int[] {-1, 1, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
                assertEquals(CudaResult.INVALID_DEVICE, attribute(rig.guest(), number, 0), "device=" + number);
                assertEquals(CudaResult.INVALID_DEVICE, attribute(rig.guest(), 0, number), "peer=" + number);
            }
        }
    }
}
