package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Guest.Received;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.fixture.StripePeer;
import io.hawser.worker.fixture.StripePeer.Piece;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Long copies to the guest whose DATA comes by stripes, and its order with the records of the session. */
@Timeout(120)
class DataStripeTest {
    private static final int LONG_BYTES = RecordLayout.LONG_COPY_BYTES + RecordLayout.MAX_BULK_BYTES + 12345;
    private static final int CALLBACK_ID = 4;
    private static final long LIMIT_S = 20;

    /** A copy to the guest. */
    private static final class Copy {
        private final byte[] bytes;
        private long arrived; // bytes

        Copy(int length) {
            bytes = new byte[length];
        }
    }

    /** A guest with stripes for DATA, each with a thread that reads it. */
    private static final class Reader implements AutoCloseable {
        private final Rig rig = Rig.withGuest(Carrier.TCP);
        private final Guest guest = rig.guest();
        private final List<StripePeer> peers = new ArrayList<>();
        private final List<Thread> threads = new ArrayList<>();
        private final BlockingQueue<Piece> arrived = new LinkedBlockingQueue<>();
        private final Map<Long, Copy> copies = new HashMap<>(); // by sequence
        private int striped; // pieces that have come by stripes
        private int announced; // AWAIT records

        Reader(int stripes) throws IOException {
            for (int i = 0; i < stripes; i++) {
                StripePeer peer = new StripePeer(rig);
                peers.add(peer);
                peer.sendRead(peer.joined());
                Thread thread = new Thread(() -> takeAll(peer));
                threads.add(thread);
                thread.start();
            }
            if (stripes > 0) { // until the worker has read a READ
                long memory = guest.allocate(LONG_BYTES);
                while (announced == 0) {
                    await(copy(memory, LONG_BYTES, 0));
                }
            }
        }

        private void takeAll(StripePeer peer) {
            try {
                for (Piece piece = peer.piece(); piece != null; piece = peer.piece()) {
                    arrived.add(piece);
                }
            } catch (IOException e) {
                // The test or the worker has closed it. A piece that is missing then fails the test.
            }
        }

        /** Issues a copy to the guest, and returns its sequence number. */
        long copy(long memory, int bytes, long stream) throws IOException {
            long sequence = guest.send(Guest.COPY_DTOH, Guest.REPLY, memory, bytes, stream);
            copies.put(sequence, new Copy(bytes));
            return sequence;
        }

        /** Reads the session's records up to one that is neither DATA nor AWAIT, and awaits the DATA before it. */
        Received next() throws IOException {
            while (true) {
                Received record = guest.next();
                long sequence = record == null ? 0 : record.fields().sequence();
                if (record != null && record.opcode() == RecordLayout.CONTROL_DATA) {
                    Guest.place(record, copies.get(sequence).bytes);
                    copies.get(sequence).arrived += record.i32(RecordLayout.DATA_BYTES_OFFSET);
                } else if (record != null && record.opcode() == RecordLayout.CONTROL_AWAIT) {
                    announced++;
                    take(copies.get(sequence), record.i64(RecordLayout.AWAIT_BYTES_OFFSET));
                } else {
                    return record;
                }
            }
        }

        /** Takes pieces of any copy until this one has so many bytes. */
        private void take(Copy copy, long bytes) throws IOException {
            try {
                while (copy.arrived < bytes) {
                    Piece piece = arrived.poll(LIMIT_S, TimeUnit.SECONDS);
                    assertTrue(piece != null, "a piece must arrive that was announced");
                    piece.placeIn(copies.get(piece.sequence()).bytes);
                    copies.get(piece.sequence()).arrived += piece.bytes().length;
                    striped++;
                }
            } catch (InterruptedException e) {
                throw new IOException(e);
            }
            assertEquals(bytes, copy.arrived);
        }

        /** Awaits the reply to a request, which must be the next one, and returns the copy's bytes, if it is a copy. */
        byte[] await(long sequence) throws IOException {
            Received reply = next();
            assertTrue(reply.opcode() < 0, "opcode=0x" + Integer.toHexString(reply.opcode()));
            assertEquals(sequence, reply.fields().sequence());
            assertEquals(0, reply.status());
            return copies.containsKey(sequence) ? whole(sequence) : null;
        }

        /** The bytes of a copy that must have arrived. */
        byte[] whole(long sequence) {
            Copy copy = copies.get(sequence);
            assertEquals(copy.bytes.length, copy.arrived);
            return copy.bytes;
        }

        /** Allocates memory of these bytes. */
        long allocate(byte[] data) throws IOException {
            long memory = guest.allocate(data.length);
            for (int at = 0; at < data.length; at += RecordLayout.MAX_BULK_BYTES) {
                byte[] part = new byte[Math.min(RecordLayout.MAX_BULK_BYTES, data.length - at)];
                System.arraycopy(data, at, part, 0, part.length);
                guest.write(memory + at, 0, part);
            }
            await(guest.send(Guest.CTX_SYNCHRONIZE, Guest.REPLY));
            return memory;
        }

        /** The guest leaves, and nothing is left. */
        void leave() throws Exception {
            rig.leave();
            for (Thread thread : threads) {
                thread.join(TimeUnit.SECONDS.toMillis(LIMIT_S));
                assertTrue(!thread.isAlive(), "the worker must close its stripes");
            }
            assertTrue(arrived.isEmpty(), "the worker must announce each piece");
        }

        @Override
        public void close() throws IOException {
            for (StripePeer peer : peers) {
                peer.close();
            }
            rig.close();
        }
    }

    @Test
    void shouldSendDataOfLongCopiesByStripes() throws Exception {
        try (Reader reader = new Reader(3)) {
            byte[] data = Guest.random(LONG_BYTES);
            long memory = reader.allocate(data);
            int before = reader.striped;
            assertArrayEquals(data, reader.await(reader.copy(memory, data.length, 0)));
            assertEquals(before + 5, reader.striped); // 5 MiB; the rest is shorter than a piece worth a stripe
            reader.leave();
            assertTrue(reader.rig.lastStats().path("bytesOut").asLong() >= 2L * data.length, "bytes of stripes count");
        }
    }

    /** More pieces than there are buffers, so that the stream waits while they are sent. */
    @Test
    void shouldSendACopyThatIsLongerThanAllBuffers() throws Exception {
        try (Reader reader = new Reader(2)) {
            byte[] data = Guest.random(80 << 20);
            long memory = reader.allocate(data);
            assertArrayEquals(data, reader.await(reader.copy(memory, data.length, reader.guest.createStream())));
            reader.leave();
        }
    }

    @Test
    void shouldAnnounceDataBeforeEachLaterRecord() throws Exception {
        try (Reader reader = new Reader(2)) {
            byte[] data = Guest.random(LONG_BYTES);
            long memory = reader.allocate(data);
            long stream = reader.guest.createStream();
            long copy = reader.copy(memory, data.length, stream);
            long synchronise = reader.guest.send(Guest.STREAM_SYNCHRONIZE, Guest.REPLY, stream);
            Received first = reader.next(); // reply to one of them, and the program may look at the copy after either
            assertTrue(first.fields().sequence() == copy || first.fields().sequence() == synchronise);
            assertArrayEquals(data, reader.whole(copy));
            reader.next();
            // A host function behind a copy whose reply may come later.
            byte[] other = Guest.random(LONG_BYTES - 1);
            long more = reader.allocate(other);
            copy = reader.copy(more, other.length, stream);
            reader.guest.send(Guest.HOST_FUNCTION, Guest.CREDITED, stream, CALLBACK_ID);
            Received record = reader.next();
            if (record.opcode() < 0) {
                record = reader.next();
            }
            assertEquals(RecordLayout.CONTROL_CALLBACK, record.opcode());
            assertArrayEquals(other, reader.whole(copy));
            reader.guest.send(RecordLayout.CONTROL_CALLBACK_DONE, 0, CALLBACK_ID);
            reader.leave();
        }
    }

    @Test
    void shouldSendShortCopiesByTheSessionsConnection() throws Exception {
        try (Reader reader = new Reader(2)) {
            byte[] data = Guest.random(RecordLayout.LONG_COPY_BYTES - 1);
            long memory = reader.allocate(data);
            int before = reader.announced;
            assertArrayEquals(data, reader.await(reader.copy(memory, data.length, 0)));
            assertEquals(before, reader.announced);
            reader.leave();
        }
    }

    @Test
    void shouldAnnounceNothingWithoutStripes() throws Exception {
        try (Reader reader = new Reader(0)) {
            byte[] data = Guest.random(LONG_BYTES);
            long memory = reader.allocate(data);
            assertArrayEquals(data, reader.await(reader.copy(memory, data.length, 0)));
            assertEquals(0, reader.announced);
            reader.leave();
        }
    }

    /** The guest would otherwise wait for a stream that waits for the guest. */
    @Test
    void shouldAnnounceOnlyDataThatIsOnItsWay() throws Exception {
        try (Reader reader = new Reader(2)) {
            byte[] data = Guest.random(LONG_BYTES);
            long memory = reader.allocate(data);
            long waiting = reader.guest.createStream();
            long free = reader.guest.createStream();
            reader.guest.send(Guest.HOST_FUNCTION, Guest.CREDITED, waiting, CALLBACK_ID);
            assertEquals(RecordLayout.CONTROL_CALLBACK, reader.next().opcode());
            long late = reader.copy(memory, data.length, waiting);
            assertArrayEquals(data, reader.await(reader.copy(memory, data.length, free)));
            reader.guest.send(RecordLayout.CONTROL_CALLBACK_DONE, 0, CALLBACK_ID);
            assertArrayEquals(data, reader.await(late));
            reader.leave();
        }
    }

    @Test
    void shouldEndTheSessionWhenAStripeForDataIsLost() throws Exception {
        try (Reader reader = new Reader(1)) {
            byte[] data = Guest.random(LONG_BYTES);
            long memory = reader.allocate(data);
            reader.peers.getFirst().close();
            String reason = "";
            while (reason.isEmpty()) { // the kernel may take bytes for a connection that the other end has closed
                long copy = reader.guest.send(Guest.COPY_DTOH, Guest.REPLY, memory, data.length, 0);
                Received record = reader.guest.next();
                while (record.opcode() != RecordLayout.CONTROL_LOST && record.fields().sequence() != copy) {
                    record = reader.guest.next();
                }
                if (record.opcode() == RecordLayout.CONTROL_LOST) {
                    reason = new String(record.buffer(RecordLayout.LOST_FIXED_BYTES, RecordLayout.LOST_REASON_OFFSET),
                        StandardCharsets.UTF_8);
                }
            }
            assertTrue(reason.contains("a connection that carries data of copies has ended"), reason);
            reader.guest.close();
            reader.rig.expect("ended");
            assertTrue(reader.rig.join());
            assertEquals("", reader.rig.gpu().leftAtClose());
            assertEquals(0, reader.rig.lastStats().path("refusedRecords").asLong());
        }
    }

    @Test
    void shouldEndWhileTheGuestReadsNoData() throws Exception {
        try (Rig rig = Rig.withGuest(Carrier.TCP); StripePeer peer = new StripePeer(rig)) {
            Guest guest = rig.guest();
            peer.sendRead(peer.joined());
            long memory = guest.allocate(64 << 20);
            boolean isOpen = false;
            while (!isOpen) { // until DATA goes by the stripe, whose socket's buffers are then full
                guest.send(Guest.COPY_DTOH, Guest.REPLY, memory, 32 << 20, 0);
                for (Received record = guest.next(); !isOpen && record.opcode() >= 0; record = guest.next()) {
                    isOpen = record.opcode() == RecordLayout.CONTROL_AWAIT;
                }
            }
            rig.leave();
        }
    }

    @Test
    void shouldRefuseAReadOfAnotherStripe() throws Exception {
        for (int chunk : new int[] {0, RecordLayout.FIRST_STRIPE_CHUNK + RecordLayout.STRIPE_CHUNKS, -1}) {
            try (Rig rig = Rig.withGuest(Carrier.TCP); StripePeer peer = new StripePeer(rig)) {
                assertEquals(RecordLayout.FIRST_STRIPE_CHUNK, peer.joined());
                peer.sendRead(chunk);
                String lost = rig.guest().reasonOfLoss();
                assertTrue(lost.contains("must send FILL for a chunk of the stripe, or READ"), lost);
                rig.guest().close();
                rig.expect("ended");
                rig.join();
                assertEquals(1, rig.lastStats().path("refusedRecords").asLong());
            }
        }
    }
}
