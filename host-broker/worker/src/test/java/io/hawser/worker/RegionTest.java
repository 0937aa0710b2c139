package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.shm.os.EventFd;
import io.hawser.shm.region.RegionGeometry;
import io.hawser.shm.region.RegionLayout;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.HeapGpu;
import io.hawser.worker.fixture.RegionPipe;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Copies through a region, memory of the region that kernels use, and the worker's waits for both kinds of guest. */
@Timeout(300)
class RegionTest {
    private static final int BYTES = 10_000;

    private static MemorySegment part(Rig rig, long offset, long bytes) {
        return rig.region().memory().asSlice(offset, bytes);
    }

    private static void copy(Rig rig, int opcode, long device, long offset, long bytes, long stream, int chunk)
        throws IOException {
        rig.guest().send(opcode, Guest.CREDITED, device, offset, bytes, stream, chunk);
    }

    @Test
    void shouldCopyPinnedMemoryByOffsetBothWays() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(BYTES);
            long heap = rig.region().geometry().heapOffset();
            part(rig, heap + 5, BYTES).copyFrom(MemorySegment.ofArray(Guest.random(BYTES)));
            copy(rig, CudaOpcodes.hwsCopyHtoDShared, memory, heap + 5, BYTES, 0, 0);
            assertArrayEquals(Guest.random(BYTES), guest.read(memory, BYTES, 0));
            copy(rig, CudaOpcodes.hwsCopyDtoHShared, memory, heap + 64_000, BYTES, 0, 0);
            assertEquals(0, guest.synchronize(0));
            assertArrayEquals(Guest.random(BYTES), part(rig, heap + 64_000, BYTES).toArray(ValueLayout.JAVA_BYTE));
            rig.leave();
        }
    }

    /** The stream waits for the long copy. A copy to the region must not stand in the queue that the long one needs. */
    @Test
    void shouldCopyLongDataToGuestBeforeACopyToTheRegion() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            rig.gpu().copyToHostInOrderOfIssue();
            Guest guest = rig.guest();
            int bytes = 100 << 20; // more than the staging memory
            long memory = guest.allocate(bytes);
            long heap = rig.region().geometry().heapOffset();
            guest.write(memory, 0, Guest.random(BYTES));
            long read = guest.send(Guest.COPY_DTOH, Guest.REPLY, memory, bytes, 0);
            copy(rig, CudaOpcodes.hwsCopyDtoHShared, memory, heap, BYTES, 0, 0);
            guest.collect(read, bytes);
            assertEquals(0, guest.synchronize(0));
            assertArrayEquals(Guest.random(BYTES), part(rig, heap, BYTES).toArray(ValueLayout.JAVA_BYTE));
            rig.leave();
        }
    }

    @Test
    void shouldGiveChunkBackWhenItsCopyIsDone() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            Guest guest = rig.guest();
            RegionGeometry geometry = rig.region().geometry();
            long memory = guest.allocate(BYTES);
            long from = geometry.chunk(RegionPipe.SLOT, 1);
            part(rig, from, BYTES).copyFrom(MemorySegment.ofArray(Guest.random(BYTES)));
            rig.region().begin(1);
            copy(rig, CudaOpcodes.hwsCopyHtoDShared, memory, from, BYTES, 0, 2);
            assertEquals(0, rig.region().await(1));
            part(rig, from, BYTES).fill((byte) 0); // the copy no longer needs it
            long last = geometry.chunkCount() - 1L;
            long to = geometry.chunk(RegionPipe.SLOT, (int) last) + geometry.chunkBytes() - BYTES;
            rig.region().begin((int) last);
            copy(rig, CudaOpcodes.hwsCopyDtoHShared, memory, to, BYTES, 0, (int) last + 1);
            assertEquals(0, rig.region().await((int) last));
            assertArrayEquals(Guest.random(BYTES), part(rig, to, BYTES).toArray(ValueLayout.JAVA_BYTE));
            rig.leave();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void shouldPinBulkAreaPartByPartWhetherItCanOrNot(boolean can) throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            if (!can) {
                rig.gpu().disablePinning();
            }
            RegionGeometry geometry = rig.region().geometry();
            long memory = rig.guest().allocate(BYTES);
            copy(rig, CudaOpcodes.hwsCopyHtoDShared, memory, geometry.heapOffset(), BYTES, 0, 0);
            assertEquals(0, rig.guest().synchronize(0));
            assertEquals(List.of(), rig.gpu().pinned());
            for (int chunk = 0; chunk < geometry.chunkCount(); chunk++) {
                rig.region().begin(chunk);
                copy(rig, CudaOpcodes.hwsCopyHtoDShared, memory, geometry.chunk(RegionPipe.SLOT, chunk), BYTES, 0,
                    chunk + 1);
                assertEquals(0, rig.region().await(chunk));
            }
            long next = rig.gpu().pinned().getFirst().address();
            for (MemorySegment part : rig.gpu().pinned()) {
                assertEquals(next, part.address(), "each part once");
                assertEquals(0, part.byteSize() % RegionLayout.PAGE_BYTES);
                next += part.byteSize();
            }
            assertEquals(geometry.bulkBytes(), next - rig.gpu().pinned().getFirst().address());
            rig.leave();
        }
    }

    @Test
    void shouldHoldChunkUntilStreamGetsThere() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(BYTES);
            long stream = guest.createStream();
            guest.launch(guest.function(guest.loadImage("hold"), "hold"), stream, new byte[0]);
            long from = rig.region().geometry().chunk(RegionPipe.SLOT, 0);
            rig.region().begin(0);
            copy(rig, CudaOpcodes.hwsCopyHtoDShared, memory, from, BYTES, stream, 1);
            assertEquals(0, guest.call(Guest.DEVICE_INFO, 0).status()); // the session thread is not blocked
            long word = rig.region().geometry().chunkWord(RegionPipe.SLOT, 0);
            assertEquals(RegionLayout.CHUNK_BUSY, rig.region().memory().get(ValueLayout.JAVA_INT, word));
            rig.gpu().release();
            assertEquals(0, rig.region().await(0));
            rig.leave();
        }
    }

    @Test
    void shouldGiveChunkOfRefusedCopyBackWithItsError() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            Guest guest = rig.guest();
            RegionGeometry geometry = rig.region().geometry();
            long from = geometry.chunk(RegionPipe.SLOT, 3);
            long memory = guest.allocate(BYTES);
            rig.region().begin(3);
            copy(rig, CudaOpcodes.hwsCopyHtoDShared, memory + 1, from, BYTES, 0, 4); // beyond the allocation
            assertEquals(1, rig.region().await(3));
            long stream = guest.createStream();
            guest.send(CudaOpcodes.cuStreamDestroy_v2, 0, stream);
            rig.region().begin(3);
            copy(rig, CudaOpcodes.hwsCopyDtoHShared, memory, from, BYTES, stream, 4);
            assertEquals(400, rig.region().await(3));
            rig.region().begin(3);
            guest.send(CudaOpcodes.hwsWriteBoxShared, Guest.CREDITED, memory, 64, 8, 0, 0, 0, 65, 2, 1, 0, from, 65,
                130, 4);
            assertEquals(1, rig.region().await(3)); // rows longer than their pitch
            guest.synchronize(0);
            rig.leave();
        }
    }

    @Test
    void shouldGiveChunkBackWithFaultOfContext() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(BYTES);
            guest.launch(guest.function(guest.loadImage("fault"), "fault"), 0, new byte[0]);
            rig.region().begin(0);
            copy(rig, CudaOpcodes.hwsCopyHtoDShared, memory, rig.region().geometry().chunk(RegionPipe.SLOT, 0), BYTES,
                0, 1);
            assertEquals(700, rig.region().await(0));
            rig.leave();
        }
    }

    @Test
    void shouldCopyBoxesWithPitchesOfBothSides() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(64 * 8 * 4);
            long from = rig.region().geometry().heapOffset() + 3;
            byte[] host = Guest.random(100 * 5 * 2);
            part(rig, from, host.length).copyFrom(MemorySegment.ofArray(host));
            // 2 slices of 3 rows of 10 bytes at (5, 2, 1); on the host 100 bytes from row to row, 5 rows per slice
            guest.send(CudaOpcodes.hwsWriteBoxShared, Guest.CREDITED, memory, 64, 8, 5, 2, 1, 10, 3, 2, 0, from, 100,
                500, 0);
            byte[] device = guest.read(memory, 64 * 8 * 4, 0);
            for (int i = 0; i < 60; i++) {
                int slice = i / 30;
                int row = i / 10 % 3;
                assertEquals(host[slice * 500 + row * 100 + i % 10],
                    device[((slice + 1) * 8 + row + 2) * 64 + 5 + i % 10], "i=" + i);
            }
            long to = from + 4096;
            guest.send(CudaOpcodes.hwsReadBoxShared, Guest.CREDITED, memory, 64, 8, 5, 2, 1, 10, 3, 2, 0, to, 10, 30,
                0);
            assertEquals(0, guest.synchronize(0));
            byte[] box = part(rig, to, 60).toArray(ValueLayout.JAVA_BYTE);
            for (int i = 0; i < 60; i++) {
                assertEquals(host[i / 30 * 500 + i / 10 % 3 * 100 + i % 10], box[i], "i=" + i);
            }
            rig.leave();
        }
    }

    @Test
    void shouldLetDeviceUseMappedHostMemoryUntilItIsTakenBack() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            Guest guest = rig.guest();
            long heap = rig.region().geometry().heapOffset();
            long mapped = guest.call(CudaOpcodes.hwsHostMap, heap + 4096, 8192).i64(0);
            assertTrue(mapped != 0);
            assertEquals(1, rig.gpu().hostMaps());
            guest.write(mapped + 100, 0, Guest.random(8000));
            assertEquals(0, guest.synchronize(0));
            assertArrayEquals(Guest.random(8000), part(rig, heap + 4196, 8000).toArray(ValueLayout.JAVA_BYTE));
            guest.send(Guest.MEM_FREE, 0, mapped); // not device memory
            assertEquals(1, guest.synchronize(0));
            guest.launch(guest.function(guest.loadImage("hold"), "hold"), 0, new byte[0]);
            long request = guest.send(CudaOpcodes.hwsHostUnmap, Guest.REPLY, heap + 4096);
            assertEquals(1, guest.call(Guest.COPY_DTOH, mapped, 1, guest.createStream()).status());
            assertEquals(1, rig.gpu().hostMaps()); // a kernel may still use it
            rig.gpu().release();
            assertEquals(0, guest.replyTo(request).status());
            assertEquals(0, rig.gpu().hostMaps());
            assertTrue(guest.call(CudaOpcodes.hwsHostMap, heap, 16384).i64(0) != 0);
            assertEquals(HeapGpu.TOTAL_BYTES, guest.call(Guest.MEM_GET_INFO).i64(0)); // not charged to the quota
            rig.leave();
        }
    }

    @Test
    void shouldCopyByOffsetWhereDeviceCannotMapHostMemory() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            rig.gpu().disableHostMapping();
            Guest guest = rig.guest();
            long heap = rig.region().geometry().heapOffset();
            Guest.Received reply = guest.call(CudaOpcodes.hwsHostMap, heap, 4096);
            assertEquals(0, reply.status());
            assertEquals(0, reply.i64(0));
            long memory = guest.allocate(100);
            part(rig, heap, 100).copyFrom(MemorySegment.ofArray(Guest.random(100)));
            copy(rig, CudaOpcodes.hwsCopyHtoDShared, memory, heap, 100, 0, 0);
            assertArrayEquals(Guest.random(100), guest.read(memory, 100, 0));
            assertEquals(0, guest.call(CudaOpcodes.hwsHostUnmap, heap).status());
            rig.leave();
        }
    }

    @Test
    void shouldServeMachineThatRings() throws IOException {
        try (EventFd doorbell = EventFd.create(); Rig rig = new Rig(Carrier.SHM)) {
            rig.broker().write("{\"type\":\"doorbell\"}".getBytes(), doorbell.fd());
            rig.assignRegion(0, RegionLayout.KIND_MACHINE, () -> ring(doorbell));
            serve(rig);
        }
    }

    private static void ring(EventFd doorbell) {
        try {
            doorbell.signal();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Test
    void shouldServeMachineThatCannotRing() throws IOException {
        try (Rig rig = new Rig(Carrier.SHM)) {
            rig.assignRegion(0, RegionLayout.KIND_MACHINE, () -> {});
            serve(rig);
        }
    }

    private static void serve(Rig rig) throws IOException {
        Guest guest = rig.guest();
        guest.next(); // WELCOME
        guest.createContext();
        long memory = guest.allocate(4 << 20);
        guest.write(memory, 0, Guest.random(1 << 20));
        byte[] data = guest.read(memory, 4 << 20, 0); // longer than the ring, so the worker waits for room
        assertArrayEquals(Guest.random(1 << 20), Arrays.copyOf(data, 1 << 20));
        rig.leave();
    }

    @Test
    void shouldSleepWhileGuestIsIdle() throws IOException, InterruptedException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            long thread = Thread.getAllStackTraces().keySet().stream().filter(each -> each.getName().equals("session"))
                .findFirst().orElseThrow().threadId();
            long before = ManagementFactory.getThreadMXBean().getThreadCpuTime(thread);
            Thread.sleep(1000); // the test measures processor time, not elapsed time
            long usedNs = ManagementFactory.getThreadMXBean().getThreadCpuTime(thread) - before;
            assertTrue(usedNs < 200_000_000, () -> "usedNs=" + usedNs);
            rig.leave();
        }
    }
}
