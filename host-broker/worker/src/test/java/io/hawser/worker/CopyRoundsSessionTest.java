package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.EventFd;
import io.hawser.shm.turns.TurnPage;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A worker that copies in rounds; this test plays the broker's end of its page. */
@Timeout(120)
class CopyRoundsSessionTest {
    private static final int BYTES = 400_000; // no multiple of a part
    private static final int COUNT = 5;

    private int pageDescriptor;
    private TurnPage page;
    private EventFd bell;
    private Rig rig;
    private Guest guest;
    private long heap;
    private MemorySegment pinned;

    @BeforeEach
    void start() throws IOException {
        pageDescriptor = TurnPage.create();
        page = TurnPage.map(pageDescriptor);
        bell = EventFd.create();
        rig = Rig.withTurns(Carrier.SHM, pageDescriptor, bell.fd());
        guest = rig.guest();
        heap = rig.region().geometry().heapOffset();
        pinned = rig.region().memory().asSlice(heap, (COUNT + 1L) * BYTES);
        pinned.asSlice(0, BYTES).copyFrom(MemorySegment.ofArray(Guest.random(BYTES)));
    }

    @AfterEach
    void stop() throws IOException {
        rig.close();
        page.close();
        bell.close();
        Descriptors.close(pageDescriptor);
    }

    private void copy(int opcode, long device, int place, long stream) throws IOException {
        guest.send(opcode, Guest.CREDITED, device, heap + (long) place * BYTES, (long) BYTES, stream, 0);
    }

    private static byte[] fill(long pointer, int words, int value) {
        return ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN).putLong(pointer).putInt(words).putInt(value)
            .array();
    }

    private int copiedBytes() {
        return page.copied() * TurnPage.COPIED_UNIT_BYTES;
    }

    private void leave() throws IOException {
        guest.close();
        rig.expect("ended");
        assertTrue(rig.join());
        assertEquals("", rig.gpu().leftAtClose());
    }

    @Test
    void shouldRingAtTheFirstCopyAndCount() throws IOException {
        long memory = guest.allocate(BYTES);
        page.setCopies(TurnPage.REPORTED);
        copy(CudaOpcodes.hwsCopyHtoDShared, memory, 0, 0);
        assertEquals(0, guest.synchronize(0));
        assertTrue(bell.poll(0));
        assertEquals(BYTES, copiedBytes(), TurnPage.COPIED_UNIT_BYTES);
        leave();
    }

    /** Each copy has several parts, and each part ends a round. The kernels still run between the copies. */
    @Test
    void shouldKeepTheOrderOfCopiesInPartsAndKernels() throws IOException {
        long memory = guest.allocate(BYTES);
        long fill = guest.function(guest.loadImage("fill"), "fill");
        long stream = guest.createStream();
        page.setCopies(64);
        for (int i = 0; i < COUNT; i++) {
            copy(CudaOpcodes.hwsCopyHtoDShared, memory, 0, stream);
            guest.launch(fill, stream, fill(memory + BYTES - 16, 4, i));
            copy(CudaOpcodes.hwsCopyDtoHShared, memory, 1 + i, stream);
        }
        assertEquals(0, guest.synchronize(stream));
        assertEquals(2 * COUNT * BYTES, copiedBytes(), TurnPage.COPIED_UNIT_BYTES);
        for (int i = 0; i < COUNT; i++) {
            byte[] expected = Guest.random(BYTES);
            ByteBuffer.wrap(expected).order(ByteOrder.LITTLE_ENDIAN).position(BYTES - 16).putInt(i).putInt(i).putInt(i)
                .putInt(i);
            assertArrayEquals(expected, pinned.asSlice((1L + i) * BYTES, BYTES).toArray(ValueLayout.JAVA_BYTE));
        }
        leave();
    }

    /** A copy that waits for the guest must not hold the others for ever. */
    @Test
    void shouldGoOnWhileACopyOfTheRoundWaits() throws IOException {
        long memory = guest.allocate(2L * BYTES);
        long held = guest.createStream();
        long free = guest.createStream();
        page.setCopies(64);
        guest.launch(guest.function(guest.loadImage("hold"), "hold"), held, new byte[0]);
        copy(CudaOpcodes.hwsCopyHtoDShared, memory, 0, held);
        copy(CudaOpcodes.hwsCopyHtoDShared, memory + BYTES, 0, free);
        copy(CudaOpcodes.hwsCopyDtoHShared, memory + BYTES, 1, free);
        assertEquals(0, guest.synchronize(free));
        assertArrayEquals(Guest.random(BYTES), pinned.asSlice(BYTES, BYTES).toArray(ValueLayout.JAVA_BYTE));
        rig.gpu().release();
        assertEquals(0, guest.synchronize(held));
        assertArrayEquals(Guest.random(BYTES), guest.read(memory, BYTES, 0));
        leave();
    }
}
