package io.hawser.worker.channel.shm;

import static org.junit.jupiter.api.Assertions.assertAll;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.hawser.shm.os.Descriptors;
import io.hawser.shm.region.RegionGeometry;
import io.hawser.shm.region.RegionLayout;
import java.io.IOException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class SharedRegionTest {
    private static final long REGION_BYTES = 8 << 20;
    private static final int SLOTS = 2;

    private int descriptor;

    @BeforeEach
    void make() throws IOException {
        descriptor = Descriptors.memory("hawser-shared-region-test", REGION_BYTES);
    }

    @AfterEach
    void close() {
        Descriptors.close(descriptor);
    }

    private void refuse(long bytes, int slots, int slot, int kind) {
        assertThrows(IOException.class,
            () -> SharedRegion.map(descriptor, new SharedRegion.Place(bytes, slots, slot, kind, 0)).close(),
            "bytes=" + bytes + " slots=" + slots + " slot=" + slot + " kind=" + kind);
    }

    @Test
    void shouldMapOnlyASlotThatTheRegionHas() throws IOException {
        SharedRegion.map(descriptor, new SharedRegion.Place(REGION_BYTES, SLOTS, SLOTS - 1, RegionLayout.KIND_PROCESS,
            0)).close();
        refuse(REGION_BYTES, SLOTS, SLOTS, RegionLayout.KIND_PROCESS);
        refuse(REGION_BYTES, SLOTS, -1, RegionLayout.KIND_PROCESS);
        refuse(REGION_BYTES, 0, 0, RegionLayout.KIND_PROCESS);
        refuse(REGION_BYTES, RegionLayout.MAX_SLOTS, 0, RegionLayout.KIND_PROCESS);
        refuse(REGION_BYTES + 1, SLOTS, 0, RegionLayout.KIND_PROCESS);
        refuse(2 * REGION_BYTES, SLOTS, 0, RegionLayout.KIND_PROCESS);
    }

    @Test
    void shouldServeProcessesAndMachinesOnly() throws IOException {
        SharedRegion.map(descriptor, new SharedRegion.Place(REGION_BYTES, SLOTS, 0, RegionLayout.KIND_MACHINE, 0))
            .close();
        for (int kind : new int[] {0, -1, RegionLayout.KIND_PROCESS + RegionLayout.KIND_MACHINE, 99}) {
            refuse(REGION_BYTES, SLOTS, 0, kind);
        }
    }

    @Test
    void shouldAllowOnlyItsOwnSlotsChunksAndTheHeap() throws IOException {
        RegionGeometry geometry = RegionGeometry.of(REGION_BYTES, SLOTS);
        try (SharedRegion region = SharedRegion.map(descriptor, new SharedRegion.Place(REGION_BYTES, SLOTS, 1,
            RegionLayout.KIND_PROCESS, 0))) {
            assertAll(
                () -> check(region, true, geometry.heapOffset(), 8, 0),
                () -> check(region, true, geometry.chunk(1, 0), geometry.chunkBytes(), 1),
                () -> check(region, false, geometry.heapOffset(), 8, 1),
                () -> check(region, false, geometry.heapOffset(), 8, -1),
                () -> check(region, false, geometry.chunk(1, 0), 8, 0),
                () -> check(region, false, geometry.chunk(0, 0), 8, 1),
                () -> check(region, false, geometry.chunk(1, 0), 8, 2),
                () -> check(region, false, geometry.chunk(1, 0), 8, Integer.MIN_VALUE));
        }
    }

    private static void check(SharedRegion region, boolean expected, long offset, long bytes, int chunk) {
        assertEquals(expected, region.allows(offset, bytes, chunk),
            "offset=" + offset + " bytes=" + bytes + " chunk=" + chunk);
    }
}
