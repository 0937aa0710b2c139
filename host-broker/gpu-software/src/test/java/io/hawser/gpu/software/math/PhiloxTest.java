package io.hawser.gpu.software.math;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.curand.HwsRandFunction;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.api.Test;

class PhiloxTest {
    private static final int COUNT = 200_000;

    private static int[] block(int[] counter, int key0, int key1) {
        int[] out = new int[4];
        Philox.block(out, counter[0], counter[1], counter[2], counter[3], key0, key1);
        return out;
    }

    /** The published vectors of Random123 (kat_vectors, philox4x32 with 10 rounds). */
    @Test
    void shouldGiveThePublishedNumbers() {
        assertArrayEquals(new int[] {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}, block(new int[4], 0, 0));
        assertArrayEquals(new int[] {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
            block(new int[] {-1, -1, -1, -1}, -1, -1));
        assertArrayEquals(new int[] {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
            block(new int[] {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0));
    }

    @Test
    void shouldOrderSubsequencesAsDocumented() {
        long seed = 0x1234_5678_9abc_def0L;
        Random random = new Random(1);
        for (int i = 0; i < 1000; i++) {
            long position = random.nextLong() >>> random.nextInt(1, 60);
            long group = position / 4;
            long index = group / 65536;
            int[] counter = {(int) index, (int) (index >>> 32), (int) (group % 65536), 0};
            int[] expected = block(counter, (int) seed, (int) (seed >>> 32));
            Philox numbers = new Philox(seed, position);
            for (int place = (int) (position % 4); place < 4; place++) {
                assertEquals(expected[place], numbers.next(), "position=" + position);
            }
        }
    }

    @Test
    void shouldContinueWhereTheLastCallEnded() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment whole = arena.allocate(ValueLayout.JAVA_INT, COUNT);
            new RandomWork(7, 3).fill(HwsRandFunction.HWS_RAND_BITS, whole.address(), COUNT, 0, 0);
            MemorySegment parts = arena.allocate(ValueLayout.JAVA_INT, COUNT);
            RandomWork work = new RandomWork(7, 3);
            Random random = new Random(2);
            for (int done = 0; done < COUNT;) {
                int count = Math.min(random.nextInt(1, 5000), COUNT - done);
                work.fill(HwsRandFunction.HWS_RAND_BITS, parts.address() + 4L * done, count, 0, 0);
                done += count;
            }
            assertEquals(-1, whole.mismatch(parts));
        }
    }

    private static double[] doubles(int function, double mean, double stddev) {
        boolean isDouble = function == HwsRandFunction.HWS_RAND_UNIFORM_DOUBLE
            || function == HwsRandFunction.HWS_RAND_NORMAL_DOUBLE
            || function == HwsRandFunction.HWS_RAND_LOG_NORMAL_DOUBLE;
        double[] out = new double[COUNT];
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment numbers = arena.allocate(8L * COUNT, 8);
            new RandomWork(42, 0).fill(function, numbers.address(), COUNT, mean, stddev);
            for (int i = 0; i < COUNT; i++) {
                out[i] = isDouble ? numbers.getAtIndex(ValueLayout.JAVA_DOUBLE, i)
                    : numbers.getAtIndex(ValueLayout.JAVA_FLOAT, i);
            }
        }
        return out;
    }

    /** Mean and variance lie within six deviations of the mean of so many numbers. */
    private static void check(double[] numbers, double mean, double variance, double fourth) {
        double sum = 0;
        double squares = 0;
        for (double number : numbers) {
            sum += number;
            squares += (number - mean) * (number - mean);
        }
        assertEquals(mean, sum / COUNT, 6 * Math.sqrt(variance / COUNT));
        assertEquals(variance, squares / COUNT, 6 * Math.sqrt((fourth - variance * variance) / COUNT));
    }

    @Test
    void shouldHaveTheMomentsOfTheDistributions() {
        for (int function : new int[] {HwsRandFunction.HWS_RAND_UNIFORM, HwsRandFunction.HWS_RAND_UNIFORM_DOUBLE}) {
            double[] numbers = doubles(function, 0, 0);
            check(numbers, 0.5, 1 / 12.0, 1 / 80.0);
            for (double number : numbers) {
                assertTrue(number > 0 && number <= 1, "documented: 0 is excluded, 1 included");
            }
        }
        for (int function : new int[] {HwsRandFunction.HWS_RAND_NORMAL, HwsRandFunction.HWS_RAND_NORMAL_DOUBLE}) {
            check(doubles(function, -3, 2), -3, 4, 3 * 16);
        }
        for (int function : new int[] {HwsRandFunction.HWS_RAND_LOG_NORMAL,
            HwsRandFunction.HWS_RAND_LOG_NORMAL_DOUBLE}) {
            double[] numbers = doubles(function, 1, 0.5);
            for (int i = 0; i < COUNT; i++) {
                numbers[i] = Math.log(numbers[i]);
            }
            check(numbers, 1, 0.25, 3 * 0.0625);
        }
    }
}
