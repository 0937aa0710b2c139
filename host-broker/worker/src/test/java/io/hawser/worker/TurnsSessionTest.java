package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.EventFd;
import io.hawser.shm.turns.TurnPage;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Guest.Received;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** A worker that takes turns; this test plays the broker's end of its page. */
@ParameterizedClass
@EnumSource(Carrier.class)
class TurnsSessionTest {
    private static final long LIMIT_NS = 120_000_000_000L;
    private static final long CALLBACK = 42;

    @Parameter
    private Carrier carrier;
    private int pageDescriptor;
    private TurnPage page;
    private EventFd bell;
    private Rig rig;
    private Guest guest;

    @BeforeEach
    void start() throws IOException {
        pageDescriptor = TurnPage.create();
        page = TurnPage.map(pageDescriptor);
        bell = EventFd.create();
        rig = Rig.withTurns(carrier, pageDescriptor, bell.fd());
        guest = rig.guest();
    }

    @AfterEach
    void stop() throws IOException {
        rig.close();
        page.close();
        bell.close();
        Descriptors.close(pageDescriptor);
    }

    private static byte[] fill(long pointer, int words, int value) {
        return ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN).putLong(pointer).putInt(words).putInt(value)
            .array();
    }

    /** Waits for the bell until the page has this state. */
    private void awaitState(int state) throws IOException {
        long end = System.nanoTime() + LIMIT_NS;
        while (page.state() != state) {
            assertTrue(System.nanoTime() < end, "state=" + page.state() + " expected=" + state);
            bell.poll(LIMIT_NS);
        }
    }

    private void leave() throws IOException {
        guest.close();
        rig.expect("ended");
        assertTrue(rig.join());
        assertEquals("", rig.gpu().leftAtClose());
    }

    @Test
    void shouldKeepOrderOfRecordsThatWaitForATurn() throws IOException {
        long fill = guest.function(guest.loadImage("fill"), "fill");
        int words = 400;
        long memory = guest.allocate(4L * words);
        guest.write(memory, 0, new byte[4 * words]);
        assertEquals(0, guest.synchronize(0));
        page.setPermit(TurnPage.WAIT);
        for (int i = 0; i < words; i++) {
            guest.launch(fill, 0, fill(memory, words - i, i));
            if (i == words / 2) {
                guest.write(memory + 4L * (words - 1), 0, new byte[] {1, 2, 3, 4});
            }
        }
        long waits = guest.send(Guest.STREAM_SYNCHRONIZE, Guest.REPLY, 0);
        awaitState(TurnPage.WANTS);
        page.setPermit(TurnPage.TURN);
        assertEquals(0, guest.replyTo(waits).status());
        ByteBuffer expected = ByteBuffer.allocate(4 * words).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < words - 1; i++) {
            expected.putInt(words - 1 - i);
        }
        expected.put(new byte[] {1, 2, 3, 4});
        assertArrayEquals(expected.array(), guest.read(memory, 4 * words, 0));
        awaitState(TurnPage.IDLE);
        leave();
        assertEquals(words, rig.lastStats().path("kernels").asInt());
        assertTrue(rig.lastStats().path("waitedMs").asLong() >= 0);
    }

    @Test
    void shouldStopAtTheEndOfATurnAndContinueInTheNext() throws IOException {
        long hold = guest.function(guest.loadImage("hold fill"), "hold");
        long memory = guest.allocate(4);
        page.setPermit(TurnPage.TURN);
        guest.launch(hold, 0, new byte[0]);
        assertEquals(0, guest.synchronize(guest.createStream()), "it has been served");
        assertEquals(TurnPage.BUSY, page.state());
        page.setPermit(TurnPage.WAIT);
        long fill = guest.function(guest.loadImage("fill"), "fill");
        guest.launch(fill, 0, fill(memory, 1, 7));
        rig.gpu().release();
        awaitState(TurnPage.WANTS);
        page.setPermit(TurnPage.TURN);
        assertArrayEquals(new byte[] {7, 0, 0, 0}, guest.read(memory, 4, 0));
        leave();
    }

    @Test
    void shouldLetHostFunctionsEndWhileALaunchWaits() throws IOException {
        long fill = guest.function(guest.loadImage("fill"), "fill");
        long memory = guest.allocate(4);
        long held = guest.createStream();
        page.setPermit(TurnPage.WAIT);
        guest.send(Guest.HOST_FUNCTION, Guest.CREDITED, held, CALLBACK);
        long first = guest.as(1).send(Guest.STREAM_SYNCHRONIZE, Guest.REPLY, held);
        guest.as(2).launch(fill, held, fill(memory, 1, 9));
        long second = guest.as(2).send(Guest.STREAM_SYNCHRONIZE, Guest.REPLY, held);
        Received callback = guest.next();
        assertEquals(RecordLayout.CONTROL_CALLBACK, callback.opcode());
        awaitState(TurnPage.WANTS);
        guest.send(RecordLayout.CONTROL_CALLBACK_DONE, 0, CALLBACK);
        assertEquals(0, guest.replyTo(first).status(), "an issued launch finishes without a turn");
        page.setPermit(TurnPage.OPEN);
        assertEquals(0, guest.replyTo(second).status());
        assertArrayEquals(new byte[] {9, 0, 0, 0}, guest.as(1).read(memory, 4, 0));
        leave();
    }

    @Test
    void shouldServeOtherRecordsWithoutATurn() throws IOException {
        page.setPermit(TurnPage.WAIT);
        long memory = guest.allocate(4);
        guest.write(memory, 0, new byte[] {1, 2, 3, 4});
        assertArrayEquals(new byte[] {1, 2, 3, 4}, guest.read(memory, 4, 0));
        assertEquals(TurnPage.IDLE, page.state());
        leave();
    }

    @Test
    void shouldEndWhileALaunchWaits() throws IOException {
        long fill = guest.function(guest.loadImage("fill"), "fill");
        long memory = guest.allocate(4);
        page.setPermit(TurnPage.WAIT);
        guest.launch(fill, 0, fill(memory, 1, 9));
        awaitState(TurnPage.WANTS);
        leave();
        assertEquals(0, rig.lastStats().path("kernels").asInt());
    }
}
