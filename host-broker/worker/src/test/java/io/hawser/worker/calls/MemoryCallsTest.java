package io.hawser.worker.calls;

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
class MemoryCallsTest {
    private static final long QUOTA_BYTES = 1 << 20;

    private static int pitched(Guest guest, long width, long height) throws IOException {
        return guest.call(CudaOpcodes.cuMemAllocPitch_v2, out -> {
            out.fixed(24);
            out.i64(0, width);
            out.i64(8, height);
            out.i32(16, 4);
        }).status();
    }

    private static long free(Guest guest) throws IOException {
        return guest.call(Guest.MEM_GET_INFO).i64(0);
    }

    @Test
    void shouldRefusePitchedMemoryWhoseLengthLeaves64Bits() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, QUOTA_BYTES)) {
            // Width and height; the lower 64 bits of their product are small.
            long[][] sizes = {{(1L << 62) + 1, 4}, {(1L << 32) + 1, 1L << 32}, {0, 4}, {4, 0}, {-1, 1}, {1, -1},
                {-4, -4}, {Long.MIN_VALUE, 2}};
            for (long[] size : sizes) {
                assertEquals(CudaResult.INVALID_VALUE, pitched(rig.guest(), size[0], size[1]),
                    size[0] + " by " + size[1]);
            }
            assertEquals(QUOTA_BYTES, free(rig.guest()));
        }
    }

    @Test
    void shouldChargeThePitchAndNotTheWidth() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, QUOTA_BYTES)) {
            assertEquals(CudaResult.OUT_OF_MEMORY, pitched(rig.guest(), 4, 2049), "rows of 512 bytes");
            assertEquals(QUOTA_BYTES, free(rig.guest()), "no memory is held");
            assertEquals(0, pitched(rig.guest(), 4, 2048));
            assertEquals(0, free(rig.guest()));
        }
    }
}
