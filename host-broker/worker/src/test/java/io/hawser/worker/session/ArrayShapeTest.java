package io.hawser.worker.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CUDA_ARRAY3D_DESCRIPTOR;
import io.hawser.cuda.generated.CUarray_format;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

class ArrayShapeTest {
    private static final int LAYERED = 1;

    private static ArrayShape shape(long width, long height, long depth, int flags, int levels) {
        MemorySegment descriptor = Arena.ofAuto().allocate(CUDA_ARRAY3D_DESCRIPTOR.BYTES, 8);
        descriptor.set(ValueLayout.JAVA_LONG, CUDA_ARRAY3D_DESCRIPTOR.WIDTH_OFFSET, width);
        descriptor.set(ValueLayout.JAVA_LONG, CUDA_ARRAY3D_DESCRIPTOR.HEIGHT_OFFSET, height);
        descriptor.set(ValueLayout.JAVA_LONG, CUDA_ARRAY3D_DESCRIPTOR.DEPTH_OFFSET, depth);
        descriptor.set(ValueLayout.JAVA_INT, CUDA_ARRAY3D_DESCRIPTOR.FORMAT_OFFSET, CUarray_format.CU_AD_FORMAT_FLOAT);
        descriptor.set(ValueLayout.JAVA_INT, CUDA_ARRAY3D_DESCRIPTOR.NUM_CHANNELS_OFFSET, 4);
        descriptor.set(ValueLayout.JAVA_INT, CUDA_ARRAY3D_DESCRIPTOR.FLAGS_OFFSET, flags);
        return ArrayShape.of(descriptor, levels);
    }

    @Test
    void shouldChargeWholeTilesBlocksAndPages() {
        assertEquals(64 << 10, shape(1, 0, 0, 0, 1).chargedBytes());
        assertEquals(1024 * 16 * 1024, shape(1024, 1024, 0, 0, 1).chargedBytes());
        assertEquals(1024 * 16 * 1152, shape(1024, 1025, 0, 0, 1).chargedBytes(), "blocks of 128 rows");
        assertEquals(4096 * 8, shape(256, 3, 0, 0, 1).chargedBytes() - (32 << 10), "low ones");
        assertEquals(2L * 1024 * 16 * 1024, shape(1024, 1024, 2, LAYERED, 1).chargedBytes());
        assertEquals(6 << 20, shape(25, 100, 100, 0, 1).chargedBytes(), "what an H200 takes");
    }

    @Test
    void shouldChargeTheLargestWithoutOverflow() {
        assertEquals(1L << 58, shape(1 << 18, 1 << 18, 1 << 18, 0, 1).chargedBytes());
        assertNull(shape((1 << 18) + 1, 1, 1, 0, 1));
        assertNull(shape(1, 1, 1, 0, ArrayShape.MAX_LEVELS + 1));
        assertNull(shape(1, 1, 1, 0, 0));
    }

    @Test
    void shouldHalveLengthsButNotLayers() {
        ArrayShape level = shape(40, 6, 5, 0, 4).level(3);
        assertEquals(new ArrayShape(5, 1, 1, 16, 0, 1, 0), level);
        assertEquals(new ArrayShape(5, 1, 5, 16, LAYERED, 1, 0), shape(40, 6, 5, LAYERED, 4).level(3));
        assertEquals(new ArrayShape(5, 0, 0, 16, 0, 1, 0), shape(40, 0, 0, 0, 4).level(3));
    }

    @Test
    void shouldRefuseEachLengthThatNoArrayCanHave() {
        long most = 1 << 18;
        long[][] wrong = {{0, 1, 1}, {-1, 1, 1}, {most + 1, 1, 1}, {Long.MIN_VALUE, 1, 1}, {1, -1, 1}, {1, most + 1, 1},
            {1, Long.MIN_VALUE, 1}, {1, 1, -1}, {1, 1, most + 1}, {1, 1, Long.MIN_VALUE}};
        for (long[] lengths : wrong) {
            assertNull(shape(lengths[0], lengths[1], lengths[2], 0, 1), Arrays.toString(lengths));
        }
        for (int levels : new int[] {0, -1, Integer.MIN_VALUE, ArrayShape.MAX_LEVELS + 1}) {
            assertNull(shape(4, 4, 4, 0, levels), "levels=" + levels);
        }
        assertNull(shape(4, 4, 4, 1 << 30, 1), "flags that are none");
    }

    @Test
    void shouldContainOnlyBoxesInside() {
        ArrayShape shape = shape(10, 20, 30, 0, 1); // elements of 16 bytes
        // x in bytes, y, z, width in bytes, rows, slices
        long[][] inside = {{0, 0, 0, 160, 20, 30}, {159, 19, 29, 1, 1, 1}, {160, 20, 30, 0, 0, 0}, {0, 0, 0, 0, 0, 0}};
        for (long[] box : inside) {
            assertTrue(shape.contains(box[0], box[1], box[2], box[3], box[4], box[5]), Arrays.toString(box));
        }
        long[] whole = {0, 0, 0, 160, 20, 30};
        for (int at = 0; at < whole.length; at++) {
            for (long wrong : new long[] {-1, whole[at] + 1, Long.MAX_VALUE, Long.MIN_VALUE}) {
                long[] box = whole.clone();
                box[at] = wrong;
                assertFalse(shape.contains(box[0], box[1], box[2], box[3], box[4], box[5]), Arrays.toString(box));
            }
        }
        assertTrue(shape(10, 0, 0, 0, 1).contains(0, 0, 0, 160, 1, 1), "a line is a row");
        assertFalse(shape(10, 0, 0, 0, 1).contains(0, 1, 0, 160, 1, 1));
        assertFalse(shape(10, 0, 0, 0, 1).contains(0, 0, 0, 160, 2, 1));
    }
}
