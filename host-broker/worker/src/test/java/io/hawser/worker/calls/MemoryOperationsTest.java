package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CUstreamBatchMemOpParams;
import io.hawser.cuda.generated.HwsMemoryOp;
import io.hawser.worker.session.GraphParameters.Range;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Every access of an operation that reaches the driver is named for the check of addresses. */
class MemoryOperationsTest {
    private static final int ROUNDS = 20_000;

    private static MemorySegment words(long... words) {
        return MemorySegment.ofArray(words);
    }

    private static MemoryOperations read(MemorySegment operations) {
        return new MemoryOperations(operations, Arena.ofAuto());
    }

    @Test
    void shouldRefuseEveryLengthButWholeOperations() {
        MemorySegment two = words(2, 4096, 1, 2, 4096, 1);
        for (long bytes = 0; bytes <= two.byteSize(); bytes++) {
            MemoryOperations cut = read(two.asSlice(0, bytes));
            boolean isWhole = bytes != 0 && bytes % HwsMemoryOp.BYTES == 0;
            assertEquals(isWhole, cut.malformed() == null, "bytes=" + bytes);
            assertEquals(isWhole ? bytes / HwsMemoryOp.BYTES : 0, cut.count());
        }
        assertNull(read(words(fill(256))).malformed());
        assertNotNull(read(words(fill(257))).malformed());
    }

    /** As many writes of 4 bytes. */
    private static long[] fill(int operations) {
        long[] words = new long[3 * operations];
        for (int i = 0; i < operations; i++) {
            words[3 * i] = 2;
        }
        return words;
    }

    /** Types and flags are small or random, so that many operations are legal. */
    @Test
    void shouldNameTheMemoryOfEachOperationWithAnAddress() {
        Random random = new Random(7);
        int legal = 0;
        for (int round = 0; round < ROUNDS; round++) {
            long[] words = new long[3 * (1 + random.nextInt(4))];
            for (int at = 0; at < words.length; at += 3) {
                int type = random.nextInt(16) == 0 ? random.nextInt() : 1 + random.nextInt(6);
                int flags = random.nextInt(16) == 0 ? random.nextInt() : 0;
                words[at] = Integer.toUnsignedLong(type) | (long) flags << 32;
                words[at + 1] = random.nextLong();
                words[at + 2] = random.nextLong();
            }
            MemoryOperations read = read(words(words));
            if (read.malformed() != null) {
                continue;
            }
            legal++;
            int range = 0;
            for (int i = 0; i < read.count(); i++) {
                MemorySegment params = read.params().asSlice((long) i * CUstreamBatchMemOpParams.BYTES);
                int type = params.get(ValueLayout.JAVA_INT, 0);
                assertEquals((int) words[3 * i], type);
                if (type == 3 || type == 6) { // a flush, a barrier
                    assertEquals(0, params.get(ValueLayout.JAVA_LONG, 8), "no address reaches the driver");
                } else {
                    assertEquals(new Range(params.get(ValueLayout.JAVA_LONG, 8), type < 3 ? 4 : 8),
                        read.ranges().get(range++));
                }
            }
            assertEquals(range, read.ranges().size());
        }
        assertTrue(legal > ROUNDS / 10, "legal=" + legal);
    }
}
