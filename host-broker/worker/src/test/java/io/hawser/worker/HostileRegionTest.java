package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.shm.os.Descriptors;
import io.hawser.shm.region.RegionGeometry;
import io.hawser.shm.region.RegionLayout;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.RegionPipe;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A guest that writes arbitrary bytes into its region harms only its own session, which ends or continues. */
@Timeout(300)
class HostileRegionTest {
    private static final VarHandle LONG_WORD = ValueLayout.JAVA_LONG.varHandle();

    @FunctionalInterface
    private interface Attack {
        void on(Rig rig) throws IOException;
    }

    private static void refuse(String reason, Attack attack) throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            attack.on(rig);
            String told = rig.expect("ended").path("reason").asText();
            assertTrue(told.contains(reason), () -> "expected: " + reason + " told: " + told);
            assertEquals(1, rig.lastStats().path("refusedRecords").asLong());
            assertFalse(rig.join());
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    private static void position(Rig rig, int field, long add) {
        RegionPipe region = rig.region();
        LONG_WORD.getAndAdd(region.memory(), region.guest(field), add);
        region.wakeWorker();
    }

    @Test
    void shouldRefuseImpossibleTail() throws IOException {
        long ring = RegionGeometry.of(RegionPipe.REGION_BYTES, RegionPipe.SLOTS).commandBytes();
        for (long add : new long[] {4, 1, -8, ring + 8, Long.MAX_VALUE - 7, Long.MIN_VALUE, -ring}) {
            refuse("tail must be a multiple of 8", rig -> position(rig, RegionLayout.GUEST_COMMAND_TAIL_OFFSET, add));
        }
    }

    @Test
    void shouldRefuseImpossibleHead() throws IOException {
        // A head that is ahead by less than a ring becomes valid after the worker has sent that many bytes, so it does
        // no harm.
        for (long add : new long[] {4, 1 << 19, 1 << 20, Long.MIN_VALUE}) {
            refuse("head must be a multiple of 8", rig -> {
                position(rig, RegionLayout.GUEST_REPLY_HEAD_OFFSET, add);
                fillReplies(rig.guest()); // the worker reads the head only when the ring seems full
            });
        }
    }

    /** Sends so many requests without reading the replies that the reply ring cannot hold them. */
    private static void fillReplies(Guest guest) throws IOException {
        for (int i = 0; i < 2000; i++) {
            try {
                guest.send(Guest.DEVICE_INFO, Guest.REPLY, 0);
            } catch (IOException e) {
                assertEquals("the worker has ended", e.getMessage());
                return;
            }
        }
    }

    @Test
    void shouldRefuseCopiesOutsideHeapAndChunk() throws IOException {
        RegionGeometry geometry = RegionGeometry.of(RegionPipe.REGION_BYTES, RegionPipe.SLOTS);
        long heap = geometry.heapOffset();
        long own = geometry.chunk(RegionPipe.SLOT, 0);
        long[][] cases = {
            // offset, bytes, chunk
            {heap - 1, 8, 0}, {0, 8, 0}, {heap + geometry.heapBytes() - 4, 8, 0},
            {-8, 8, 0}, {Long.MIN_VALUE, 8, 0}, {own, 8, 0},
            {own, geometry.chunkBytes() + 1, 1}, {own - 1, 8, 1}, {own, 8, 2}, {heap, 8, 1},
            {geometry.chunk(0, 0), 8, 1}, {own, 8, geometry.chunkCount() + 1}, {own, 8, -1},
            {own, 8, Integer.MIN_VALUE}, {heap, 8, -1}, {heap, 8, Integer.MIN_VALUE},
        };
        for (long[] each : cases) {
            HostileLaunchTest.refuse("must lie in its heap or its chunk: regionOffset="
                + Long.toUnsignedString(each[0]) + " bytes=" + each[1] + " chunk=" + (int) each[2], (rig, guest) -> {
                    // The allocation is large enough, so that only the region's check can reject the copy.
                    long memory = guest.allocate(geometry.chunkBytes() + 8);
                    guest.send(CudaOpcodes.hwsCopyHtoDShared, Guest.CREDITED, memory, each[0], each[1], 0, each[2]);
                });
        }
    }

    @Test
    void shouldFailCopiesOfLengthsThatNoDeviceHas() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            Guest guest = rig.guest();
            long heap = rig.region().geometry().heapOffset();
            long memory = guest.allocate(4096);
            for (long bytes : new long[] {-1, Long.MAX_VALUE, Long.MIN_VALUE, 4097}) {
                guest.send(CudaOpcodes.hwsCopyDtoHShared, Guest.CREDITED, memory, heap, bytes, 0, 0);
                assertEquals(1, guest.synchronize(0), () -> "bytes=" + bytes);
            }
            assertEquals(4096, guest.read(memory, 4096, 0).length);
        }
    }

    /** The word of another chunk number belongs to another slot or to the host. */
    @Test
    void shouldGiveNoChunkBackThatTheSlotDoesNotHave() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            RegionGeometry geometry = rig.region().geometry();
            long first = geometry.slot(RegionPipe.SLOT) + 2L * RegionLayout.PAGE_BYTES;
            for (int chunk : new int[] {0, -1, geometry.chunkCount() + 1, geometry.chunkCount() + 2, 1000,
                Integer.MAX_VALUE, Integer.MIN_VALUE}) {
                long word = first + (chunk - 1L) * RegionLayout.CHUNK_STRIDE;
                boolean isInside = word >= 0 && word <= geometry.regionBytes() - Integer.BYTES;
                if (isInside) {
                    rig.region().memory().set(ValueLayout.JAVA_INT, word, 0x5ace);
                }
                rig.guest().send(CudaOpcodes.hwsCopyHtoDShared, Guest.CREDITED, 4096, geometry.heapOffset(), 8, 0,
                    chunk); // rejected because of its device address
                assertEquals(1, rig.guest().synchronize(0), "chunk=" + chunk);
                if (isInside) {
                    assertEquals(0x5ace, rig.region().memory().get(ValueLayout.JAVA_INT, word), "chunk=" + chunk);
                }
            }
        }
    }

    @Test
    void shouldRefuseBoxesOutsideHeap() throws IOException {
        RegionGeometry geometry = RegionGeometry.of(RegionPipe.REGION_BYTES, RegionPipe.SLOTS);
        long heap = geometry.heapOffset();
        long[][] pitches = {{1L << 62, 0}, {-64, 64}, {64, -1}, {64, 1L << 62}, {geometry.heapBytes(), 64},
            {Long.MAX_VALUE, Long.MAX_VALUE}};
        for (long[] each : pitches) {
            HostileLaunchTest.refuse("must lie in its heap", (rig, guest) -> {
                long memory = guest.allocate(4096);
                guest.send(CudaOpcodes.hwsReadBoxShared, Guest.CREDITED, memory, 64, 8, 0, 0, 0, 64, 2, 2, 0,
                    heap, each[0], each[1], 0);
            });
        }
    }

    @Test
    void shouldRefuseInvalidMaps() throws IOException {
        RegionGeometry geometry = RegionGeometry.of(RegionPipe.REGION_BYTES, RegionPipe.SLOTS);
        long heap = geometry.heapOffset();
        long[][] maps = {{heap, 0}, {heap + 8, 4096}, {heap, 100}, {heap - 4096, 4096},
            {heap, geometry.heapBytes() + 4096}, {heap, -4096}};
        for (long[] each : maps) {
            HostileLaunchTest.refuse("", (rig, guest) -> guest.send(CudaOpcodes.hwsHostMap, Guest.REPLY, each));
        }
        HostileLaunchTest.refuse("that are not mapped", (rig, guest) -> {
            assertEquals(0, guest.call(CudaOpcodes.hwsHostMap, heap + 8192, 8192).status());
            guest.send(CudaOpcodes.hwsHostMap, Guest.REPLY, heap, 3 * 4096);
        });
        HostileLaunchTest.refuse("must have been mapped",
            (rig, guest) -> guest.send(CudaOpcodes.hwsHostUnmap, Guest.REPLY, heap));
        HostileLaunchTest.refuse("must have been mapped", (rig, guest) -> {
            assertEquals(0, guest.call(CudaOpcodes.hwsHostMap, heap, 4096).status());
            assertEquals(0, guest.call(CudaOpcodes.hwsHostUnmap, heap).status());
            guest.send(CudaOpcodes.hwsHostUnmap, Guest.REPLY, heap);
        });
    }

    @Test
    void shouldEndSessionOfGuestThatLeavesInsideRecord() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            byte[] record = rig.guest().encode(Guest.COPY_HTOD, Guest.CREDITED,
                out -> Guest.write(out, 0, 0, new byte[100_000]));
            rig.guest().sendRaw(Arrays.copyOf(record, 50_000));
            rig.guest().close();
            assertEquals("the guest has left the region", rig.expect("ended").path("reason").asText());
            assertTrue(rig.join());
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    @Test
    void shouldServeRecordsSentBeforeGuestLeft() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            for (int i = 0; i < 100; i++) {
                rig.guest().send(Guest.DEVICE_INFO, 0, 0);
            }
            rig.guest().close();
            rig.expect("ended");
            assertEquals(101, rig.lastStats().path("calls").asLong()); // including one for the context
            assertTrue(rig.join());
        }
    }

    @Test
    void shouldBoundAnswersOfGuestThatNeverReads() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            AtomicBoolean over = new AtomicBoolean();
            Thread asker = Thread.ofPlatform().daemon().start(() -> {
                try {
                    while (!over.get()) {
                        rig.guest().send(Guest.DEVICE_INFO, Guest.REPLY, 0);
                    }
                } catch (IOException e) {
                    over.set(true); // the worker has ended, with the ring full
                }
            });
            long calls = 0;
            for (long seen = -1; seen != calls || calls < 100;) { // until the worker accepts no more
                rig.expect("stats");
                seen = calls;
                calls = rig.lastStats().path("calls").asLong();
            }
            long answered = calls * rig.lastStats().path("bytesOut").asLong() / Math.max(1, calls);
            assertTrue(answered < 8 << 20, () -> "answered=" + answered);
            rig.broker().write("{\"type\":\"end\",\"reason\":\"enough\"}".getBytes());
            assertEquals("enough", rig.expect("ended").path("reason").asText());
            over.set(true);
            asker.join(120_000);
            rig.join();
            assertEquals("", rig.gpu().leftAtClose());
        } catch (InterruptedException e) {
            throw new IOException(e);
        }
    }

    @Test
    void shouldEndSessionWhoseRegionIsTruncated() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            Descriptors.resize(rig.region().descriptor(), 0);
            assertEquals("the region's memory is gone", rig.expect("ended").path("reason").asText());
            rig.join();
            assertEquals("", rig.gpu().leftAtClose());
            Descriptors.resize(rig.region().descriptor(), RegionPipe.REGION_BYTES); // for the guest's own mapping
        }
    }

    /**
     * Writes random words all over the slot while the worker serves it. The session ends, or continues until the test
     * ends it.
     */
    @Test
    void shouldSurviveRandomWritesOfGuest() throws IOException, InterruptedException {
        for (int seed = 0; seed < 40; seed++) {
            Random random = new Random(seed);
            try (Rig rig = Rig.withGuest(Carrier.SHM)) {
                long memory = rig.guest().allocate(4096);
                AtomicBoolean over = new AtomicBoolean();
                Thread scribbler = scribble(rig, random, over);
                try {
                    for (int i = 0; i < 200; i++) {
                        rig.guest().send(Guest.STREAM_SYNCHRONIZE, Guest.REPLY, 0);
                        rig.guest().write(memory, 0, new byte[random.nextInt(4096)]);
                    }
                } catch (IOException e) {
                    assertTrue(e.getMessage() != null, "the session has ended while we were sending");
                }
                over.set(true);
                scribbler.join();
                rig.broker().write("{\"type\":\"end\",\"reason\":\"enough\"}".getBytes());
                rig.expect("ended");
                rig.join();
                assertEquals("", rig.gpu().leftAtClose(), "seed=" + seed);
            }
        }
    }

    private static Thread scribble(Rig rig, Random random, AtomicBoolean over) {
        RegionPipe region = rig.region();
        int[] words = {RegionLayout.GUEST_COMMAND_TAIL_OFFSET, RegionLayout.GUEST_COMMAND_SIGNAL_OFFSET,
            RegionLayout.GUEST_REPLY_HEAD_OFFSET, RegionLayout.GUEST_REPLY_WAITING_OFFSET,
            RegionLayout.PAGE_BYTES + RegionLayout.HOST_COMMAND_HEAD_OFFSET,
            RegionLayout.PAGE_BYTES + RegionLayout.HOST_COMMAND_WAITING_OFFSET,
            RegionLayout.PAGE_BYTES + RegionLayout.HOST_REPLY_TAIL_OFFSET,
            RegionLayout.PAGE_BYTES + RegionLayout.HOST_REPLY_SIGNAL_OFFSET};
        // Otherwise only bytes of the ring are changed, so that sessions live for a while.
        boolean positions = random.nextInt(3) == 0;
        return Thread.ofPlatform().start(() -> {
            while (!over.get()) {
                long at = positions && random.nextInt(1000) == 0 ? region.guest(words[random.nextInt(words.length)])
                    : region.geometry().slot(RegionPipe.SLOT) + region.geometry().commandOffset()
                        + 8L * random.nextInt((int) region.geometry().commandBytes() / 8);
                LONG_WORD.setOpaque(region.memory(), at, random.nextBoolean() ? random.nextLong()
                    : (long) random.nextInt(RecordLayout.MAX_RECORD_BYTES));
                Thread.onSpinWait();
            }
        });
    }
}
