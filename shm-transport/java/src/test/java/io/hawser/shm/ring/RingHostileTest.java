package io.hawser.shm.ring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A thread overwrites positions and bytes with arbitrary values while this end uses the ring. */
class RingHostileTest {
    private static final long HEAD = 0;
    private static final long TAIL = 64;
    private static final long RING = 4096;
    private static final long LARGEST = 4096;
    private static final int LIES = 500; // number of detected and of undetected ones, at each size of ring
    private static final byte UNTOUCHED = 0x5a;

    private final Arena arena = Arena.ofShared();
    private final MemorySegment region = arena.allocate(RING + LARGEST + 4096, 4096);
    private final AtomicBoolean end = new AtomicBoolean();
    private final SplittableRandom random = new SplittableRandom(1);
    private Thread scribbler;
    private int noticed;
    private int believed;

    @BeforeEach
    void start() {
        scribbler = new Thread(this::scribble);
        scribbler.start();
    }

    @AfterEach
    void stop() throws InterruptedException {
        end.set(true);
        scribbler.join();
        arena.close();
    }

    @Test
    void shouldReadOnlyTheRingWhateverTheWriterSays() {
        for (long size = 8; size <= LARGEST; size *= 8) {
            long targetBytes = size + 16;
            MemorySegment target = MemorySegment.ofArray(new byte[(int) targetBytes]);
            target.fill(UNTOUCHED);
            RingReader reader = new RingReader(region, RING, size, HEAD, TAIL);
            noticed = 0;
            believed = 0;
            while (noticed < LIES || believed < LIES) {
                if (random.nextInt(4) == 0) {
                    lie(random); // in addition to the other thread, which may have no processor now
                }
                try {
                    long available = reader.available();
                    assertTrue(available >= 0 && available <= size);
                    long part = available == 0 ? 0 : random.nextLong(available) + 1;
                    reader.take(target, 8, part);
                    believed += part == 0 ? 0 : 1;
                    if (random.nextBoolean()) {
                        reader.release();
                    }
                } catch (RingCorruptException e) {
                    noticed++;
                    reader = new RingReader(region, RING, size, HEAD, TAIL, word(TAIL) & ~7L);
                }
            }
            assertUntouched(target, 0);
            assertUntouched(target, targetBytes - 8);
        }
    }

    @Test
    void shouldWriteOnlyTheRingWhateverTheReaderSays() {
        for (long size = 8; size <= LARGEST; size *= 8) {
            // At the end of the scribbler's range, so that all bytes after it must stay unchanged.
            long ring = RING + LARGEST - size;
            region.asSlice(RING + LARGEST, 4096).fill(UNTOUCHED);
            region.asSlice(128, RING - 128).fill(UNTOUCHED);
            MemorySegment source = MemorySegment.ofArray(new byte[(int) size]);
            RingWriter writer = new RingWriter(region, ring, size, HEAD, TAIL);
            noticed = 0;
            believed = 0;
            while (noticed < LIES || believed < LIES) {
                if (random.nextInt(4) == 0) {
                    lie(random); // in addition to the other thread, which may have no processor now
                }
                try {
                    long room = writer.room();
                    assertTrue(room >= 0 && room <= size);
                    long part = room == 0 ? 0 : random.nextLong(room) + 1;
                    writer.put(source, 0, part);
                    believed += part == 0 ? 0 : 1;
                    if (random.nextBoolean()) {
                        writer.commit();
                    }
                } catch (RingCorruptException e) {
                    noticed++;
                    writer = new RingWriter(region, ring, size, HEAD, TAIL, word(HEAD) & ~7L);
                }
            }
            assertEquals(-1, region.asSlice(RING + LARGEST, 4096).mismatch(MemorySegment.ofArray(new byte[4096])
                .fill(UNTOUCHED)));
            assertEquals(-1, region.asSlice(128, RING - 128).mismatch(MemorySegment.ofArray(
                new byte[(int) RING - 128]).fill(UNTOUCHED)));
        }
    }

    private static void assertUntouched(MemorySegment memory, long offset) {
        for (int i = 0; i < 8; i++) {
            assertEquals(UNTOUCHED, memory.get(ValueLayout.JAVA_BYTE, offset + i));
        }
    }

    private long word(long offset) {
        return (long) Words.I64.getOpaque(region, offset);
    }

    private void scribble() {
        SplittableRandom lies = new SplittableRandom(2);
        while (!end.get()) {
            lie(lies);
            // Pauses, so that an end that starts again after each detected lie also accepts some lies.
            for (int pause = lies.nextInt(1000); pause > 0; pause--) {
                Thread.onSpinWait();
            }
        }
    }

    private void lie(SplittableRandom lies) {
        Words.I64.setOpaque(region, HEAD, lie(lies, word(HEAD)));
        Words.I64.setOpaque(region, TAIL, lie(lies, word(TAIL)));
        region.set(ValueLayout.JAVA_BYTE, RING + lies.nextLong(LARGEST), (byte) lies.nextInt());
    }

    /** A position to attack with: usually near the current one, because a distant one is detected at once. */
    private static long lie(SplittableRandom lies, long near) {
        return switch (lies.nextInt(8)) {
            case 0 -> lies.nextLong();
            case 1 -> near + lies.nextLong(2 * LARGEST);
            case 2 -> near - (lies.nextLong(LARGEST) & ~7L);
            default -> near + (lies.nextLong(16L << lies.nextInt(9)) & ~7L);
        };
    }
}
