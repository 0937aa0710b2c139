package io.hawser.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.math.BigInteger;
import java.util.Random;
import org.junit.jupiter.api.Test;

class SizesTest {
    private static final long[] EDGES = {0, 1, 2, 3, 1L << 31, 1L << 32, (1L << 32) + 1, Long.MAX_VALUE - 1,
        Long.MAX_VALUE, Long.MIN_VALUE, -1};

    @Test
    void shouldStopAtMostInsteadOfWrapping() {
        for (long a : EDGES) {
            for (long b : EDGES) {
                check(a, b);
            }
        }
        Random random = new Random(1);
        for (int i = 0; i < 10_000; i++) {
            check(random.nextLong() >>> random.nextInt(64), random.nextLong() >>> random.nextInt(64));
        }
    }

    @Test
    void shouldMeasureBoxBySpanOfLastRow() {
        assertEquals(0, Sizes.box(512, 0, 100));
        assertEquals(0, Sizes.box(512, 4, 0));
        assertEquals(3 * 512 + 100, Sizes.box(512, 4, 100));
        assertEquals(Sizes.MOST, Sizes.box(-1, 2, 1));
        assertEquals(Sizes.MOST, Sizes.box(1L << 40, 1L << 40, 1));
    }

    @Test
    void shouldTakeNothingForLettersWithoutVectors() {
        assertEquals(5, Sizes.job('A', 5, 3));
        assertEquals(3, Sizes.job('S', 5, 3));
        for (int letter : new int[] {'O', 'N', 'a', 0, -1}) {
            assertEquals(0, Sizes.job(letter, 5, 3));
        }
    }

    @Test
    void shouldTakeTheSmallerOneOfSizesOnly() {
        assertEquals(3, Sizes.min(5, 3));
        assertEquals(0, Sizes.min(0, Long.MAX_VALUE));
        assertEquals(Sizes.MOST, Sizes.min(-1, 3));
        assertEquals(Sizes.MOST, Sizes.min(3, Long.MIN_VALUE));
    }

    private static void check(long a, long b) {
        BigInteger wideA = new BigInteger(Long.toUnsignedString(a));
        BigInteger wideB = new BigInteger(Long.toUnsignedString(b));
        assertEquals(capped(wideA.add(wideB)), Sizes.add(a, b), () -> a + " + " + b);
        assertEquals(capped(wideA.multiply(wideB)), Sizes.multiply(a, b), () -> a + " * " + b);
    }

    private static long capped(BigInteger exact) {
        return exact.min(BigInteger.valueOf(Sizes.MOST)).longValueExact();
    }
}
