package io.hawser.gpu.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class AddressRoomTest {
    private static final long CONTEXT_BYTES = 518L << 20;

    @Test
    void shouldLeaveLongMappingsOnlyTheRoomBelowTheFloor() {
        for (int i = 0; i < 3; i++) {
            try (AddressRoom room = AddressRoom.take()) {
                long address = AddressRoom.map(0, CONTEXT_BYTES, 0);
                assertEquals(AddressRoom.FLOOR, address + CONTEXT_BYTES);
                AddressRoom.unmap(address, CONTEXT_BYTES);
            }
        }
        long address = AddressRoom.map(0, CONTEXT_BYTES, 0);
        assertTrue(address > AddressRoom.FLOOR, "the room is given back");
        AddressRoom.unmap(address, CONTEXT_BYTES);
    }

    /** As threads do that begin to allocate memory, each with its own heap. */
    @Test
    void shouldLeaveRoomForShortMappings() {
        try (AddressRoom room = AddressRoom.take()) {
            List<Long> heaps = new ArrayList<>();
            for (int i = 0; i < 30; i++) {
                heaps.add(AddressRoom.map(0, 128L << 20, 0));
            }
            assertTrue(heaps.stream().allMatch(address -> address > AddressRoom.FLOOR), heaps::toString);
            heaps.forEach(address -> AddressRoom.unmap(address, 128L << 20));
        }
    }
}
