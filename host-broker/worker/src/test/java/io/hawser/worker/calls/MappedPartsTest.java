package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CUDA_ARRAY3D_DESCRIPTOR;
import io.hawser.cuda.generated.CUarray_format;
import io.hawser.cuda.generated.HwsArrayPart;
import io.hawser.worker.session.ArrayShape;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

class MappedPartsTest {
    private static final int SIDE = 6;
    private static final int SPARSE = 0x40;
    private static final int DEFERRED = 0x80;

    private record Cell(int array, int level, int x, int y, int z) {}

    private static ArrayShape shape(int flags) {
        MemorySegment descriptor = Arena.ofAuto().allocate(CUDA_ARRAY3D_DESCRIPTOR.BYTES, Long.BYTES);
        descriptor.set(ValueLayout.JAVA_LONG, CUDA_ARRAY3D_DESCRIPTOR.WIDTH_OFFSET, 1024);
        descriptor.set(ValueLayout.JAVA_LONG, CUDA_ARRAY3D_DESCRIPTOR.HEIGHT_OFFSET, 1024);
        descriptor.set(ValueLayout.JAVA_INT, CUDA_ARRAY3D_DESCRIPTOR.FORMAT_OFFSET, CUarray_format.CU_AD_FORMAT_FLOAT);
        descriptor.set(ValueLayout.JAVA_INT, CUDA_ARRAY3D_DESCRIPTOR.NUM_CHANNELS_OFFSET, 1);
        descriptor.set(ValueLayout.JAVA_INT, CUDA_ARRAY3D_DESCRIPTOR.FLAGS_OFFSET, flags);
        return ArrayShape.of(descriptor, 2);
    }

    private static ArrayPart part(long... numbers) {
        return ArrayPart.of(shape(SPARSE), new HwsArrayPart(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4],
            numbers[5], numbers[6], numbers[7], numbers[8], numbers[9]));
    }

    @Test
    void shouldRefusePartsThatNoArrayHas() {
        long[] right = {0, 1, 0, 0, 0, 0, 1, 1, 1, 0};
        assertEquals(new ArrayPart(1, 0, 0, 0, 0, 1, 1, 1), part(right));
        for (int at = 0; at < right.length; at++) {
            for (long wrong : new long[] {-1, Long.MIN_VALUE, Long.MAX_VALUE, (1L << 40) + 1}) {
                long[] numbers = right.clone();
                numbers[at] = wrong;
                assertNull(part(numbers), "number " + at + "=" + wrong);
            }
        }
        assertNull(part(0, 2, 0, 0, 0, 0, 1, 1, 1, 0), "the array has two levels");
        assertNull(part(0, 0, 0, 0, 0, 0, 0, 1, 1, 0), "an empty part");
        assertNull(part(2, 0, 0, 0, 0, 0, 1, 1, 1, 0), "no subresource");
        assertNull(part(1, 0, 0, 0, 0, 0, 0, 0, 0, 0), "an empty tail");
        assertEquals(new ArrayPart(ArrayPart.TAIL, 3, 64, 0, 0, 192, 1, 1), part(1, -1, 3, 64, 0, 0, 128, -1, -1, 0));
        assertEquals(ArrayPart.WHOLE, ArrayPart.of(shape(DEFERRED), new HwsArrayPart(7, -1, -1, -1, -1, -1, 0, 0, 0,
            0)).level());
        assertFalse(shape(0).isMappedLater());
        assertEquals(0, shape(SPARSE).chargedBytes());
    }

    private static ArrayPart box(Random random) {
        int[] from = new int[3];
        int[] to = new int[3];
        for (int i = 0; i < 3; i++) {
            from[i] = random.nextInt(SIDE);
            to[i] = from[i] + 1 + random.nextInt(SIDE - from[i]);
        }
        return new ArrayPart(random.nextInt(2), 0, from[0], from[1], from[2], to[0], to[1], to[2]);
    }

    private static List<Cell> cells(int array, ArrayPart part) {
        List<Cell> cells = new ArrayList<>();
        for (long x = part.x(); x < part.endX(); x++) {
            for (long y = part.y(); y < part.endY(); y++) {
                for (long z = part.z(); z < part.endZ(); z++) {
                    cells.add(new Cell(array, part.level(), (int) x, (int) y, (int) z));
                }
            }
        }
        return cells;
    }

    /** Memory lives exactly as long as a cell of an array, or the guest, has it. */
    @Test
    void shouldReleaseMemoryWithItsLastPart() {
        Random random = new Random(1);
        for (int round = 0; round < 200; round++) {
            MappedParts parts = new MappedParts();
            List<Object> arrays = List.of(new Object(), new Object());
            Map<Cell, Allocation> model = new HashMap<>();
            List<Allocation> named = new ArrayList<>();
            Set<Allocation> orphans = new HashSet<>();
            for (int step = 0; step < 60; step++) {
                int array = random.nextInt(arrays.size());
                ArrayPart part = box(random);
                switch (random.nextInt(5)) {
                    case 0 -> named.add(new Allocation(1, false));
                    case 1, 2 -> {
                        if (!named.isEmpty()) {
                            Allocation memory = named.get(random.nextInt(named.size()));
                            parts.map(arrays.get(array), part, memory).forEach(Runnable::run);
                            cells(array, part).forEach(cell -> model.put(cell, memory));
                        }
                    }
                    case 3 -> {
                        parts.unmap(arrays.get(array), part).forEach(Runnable::run);
                        cells(array, part).forEach(model::remove);
                    }
                    default -> {
                        if (!named.isEmpty()) {
                            Allocation memory = named.remove(random.nextInt(named.size()));
                            boolean isMapped = model.containsValue(memory);
                            assertEquals(isMapped, memory.outlives(() -> assertTrue(orphans.remove(memory))));
                            if (isMapped) {
                                orphans.add(memory);
                            }
                        }
                    }
                }
                assertTrue(orphans.stream().allMatch(model::containsValue), "released too late");
                assertTrue(model.values().stream().allMatch(memory -> named.contains(memory)
                    || orphans.contains(memory)), "released too early");
            }
            arrays.forEach(parts::forget);
            assertEquals(Set.of(), orphans);
            assertEquals(0, parts.count());
        }
    }

    @Test
    void shouldBoundTheParts() {
        MappedParts parts = new MappedParts();
        Allocation memory = new Allocation(1, false);
        while (parts.hasRoom()) {
            parts.map(new Object(), new ArrayPart(0, 0, 0, 0, 0, 3, 3, 3), memory);
        }
        assertTrue(parts.count() > MappedParts.MAX_PARTS - 10 && parts.count() <= MappedParts.MAX_PARTS);
    }
}
