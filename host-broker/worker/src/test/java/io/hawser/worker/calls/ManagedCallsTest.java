package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.shm.region.RegionLayout;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class ManagedCallsTest {
    @Test
    void shouldReturnNoAddressWithoutRegion() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            assertEquals(0, rig.guest().call(CudaOpcodes.hwsRegionAddress).i64(0));
        }
    }

    @Test
    void shouldReturnAddressOfMappedMemory() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            Guest guest = rig.guest();
            long address = guest.call(CudaOpcodes.hwsRegionAddress).i64(0);
            long offset = rig.region().geometry().heapOffset();
            assertEquals(address + offset,
                guest.call(CudaOpcodes.hwsHostMap, offset, RegionLayout.GRANULE_BYTES).i64(0));
            assertEquals(0, guest.call(CudaOpcodes.hwsHostUnmap, offset).status());
        }
    }

    @Test
    void shouldReturnNoAddressThatDevicesCannotUse() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            rig.gpu().disableHostMapping();
            assertEquals(0, rig.guest().call(CudaOpcodes.hwsRegionAddress).i64(0));
        }
    }
}
