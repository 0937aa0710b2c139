package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Handles of ranges, which come from another session's worker. */
class PlaceTest {
    private static final int NAME_BYTES = 16;
    private static final int ROUNDS = 20_000;

    private static OpenedRanges.Place place(Random random, int pieces) {
        List<SharedHandles.Name> names = new ArrayList<>();
        for (int i = 0; i < pieces; i++) {
            names.add(new SharedHandles.Name(random.nextLong(), random.nextLong()));
        }
        return new OpenedRanges.Place(names, random.nextLong() >>> 1);
    }

    @Test
    void shouldReadWhatItHasWrittenAndNoPartOfIt() {
        Random random = new Random(1);
        for (int pieces = 1; pieces <= OpenedRanges.MAX_PIECES; pieces++) {
            OpenedRanges.Place place = place(random, pieces);
            byte[] handle = place.encode();
            assertEquals(place, OpenedRanges.Place.decode(handle));
            for (int length = 0; length < handle.length; length++) {
                boolean isWhole = length % NAME_BYTES == Long.BYTES && length > Long.BYTES;
                OpenedRanges.Place part = OpenedRanges.Place.decode(Arrays.copyOf(handle, length));
                assertEquals(isWhole, part != null, "length=" + length);
            }
        }
        assertNull(OpenedRanges.Place.decode(place(random, OpenedRanges.MAX_PIECES + 1).encode()));
    }

    @Test
    void shouldReadEveryHandleExactlyOrRefuseIt() {
        Random random = new Random(2);
        int read = 0;
        for (int i = 0; i < ROUNDS; i++) {
            int whole = Long.BYTES + NAME_BYTES * random.nextInt(OpenedRanges.MAX_PIECES + 4);
            byte[] handle = new byte[random.nextBoolean() ? whole : random.nextInt(2049)];
            random.nextBytes(handle);
            OpenedRanges.Place place = OpenedRanges.Place.decode(handle);
            if (place != null) {
                read++;
                assertArrayEquals(handle, place.encode());
                assertTrue(place.offset() >= 0 && place.pieces().size() <= OpenedRanges.MAX_PIECES);
            }
        }
        assertTrue(read > ROUNDS / 10 && read < ROUNDS / 2, "read=" + read);
    }
}
