package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.fixture.StripePeer;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Copies whose bytes travel by stripes, and guests that break their rules. */
@Timeout(300)
class StripeTest {
    private static final int FILL_BYTES = RecordLayout.HEADER_BYTES + RecordLayout.FILL_FIXED_BYTES;
    private static final int CHUNK_BYTES = RecordLayout.STRIPE_CHUNK_BYTES;
    private static final int CALLBACK_ID = 4;

    private static void toDevice(Guest guest, long memory, long bytes, long stream, int chunk) throws IOException {
        guest.send(CudaOpcodes.hwsCopyHtoDShared, Guest.CREDITED, memory, 0, bytes, stream, chunk);
    }

    private static void toHost(Guest guest, long memory, long bytes, long stream, int chunk) throws IOException {
        guest.send(CudaOpcodes.hwsCopyDtoHShared, Guest.CREDITED, memory, 0, bytes, stream, chunk);
    }

    @Test
    void shouldCarryBytesOfCopiesBothWays() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP); StripePeer peer = new StripePeer(rig)) {
            Guest guest = rig.guest();
            int first = peer.joined();
            assertEquals(RecordLayout.FIRST_STRIPE_CHUNK, first);
            long stream = guest.createStream();
            int[] lengths = {1, 7, 8, 4097, CHUNK_BYTES - 1, CHUNK_BYTES};
            long memory = guest.allocate(CHUNK_BYTES);
            for (int i = 0; i < lengths.length; i++) {
                byte[] data = Guest.random(lengths[i]);
                int chunk = first + i % RecordLayout.STRIPE_CHUNKS;
                peer.fill(chunk, data);
                toDevice(guest, memory, data.length, stream, chunk);
                assertEquals(0, peer.done(chunk, 0).length);
                assertArrayEquals(data, guest.read(memory, data.length, stream));
                toHost(guest, memory, data.length, stream, chunk);
                assertArrayEquals(data, peer.done(chunk, 0));
            }
            guest.close();
            rig.expect("ended");
            long sum = Arrays.stream(lengths).sum();
            assertTrue(rig.lastStats().path("bytesIn").asLong() >= sum, "bytes of stripes count");
            assertTrue(rig.lastStats().path("bytesOut").asLong() >= 2 * sum, "bytes of stripes count");
            assertTrue(rig.join());
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    @Test
    void shouldReadAChunkWhenTheStreamReachesItsCopy() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP); StripePeer peer = new StripePeer(rig)) {
            Guest guest = rig.guest();
            int chunk = peer.joined();
            byte[] data = Guest.random(1000);
            long stream = guest.createStream();
            long memory = guest.allocate(data.length);
            guest.send(Guest.HOST_FUNCTION, Guest.CREDITED, stream, CALLBACK_ID);
            peer.fill(chunk, new byte[data.length]);
            toDevice(guest, memory, data.length, stream, chunk);
            toHost(guest, memory, data.length, stream, chunk + 1);
            assertEquals(RecordLayout.CONTROL_CALLBACK, guest.next().opcode());
            peer.fill(chunk, data); // no honest guest does so, and only its own copy changes
            guest.send(RecordLayout.CONTROL_CALLBACK_DONE, 0, CALLBACK_ID);
            assertEquals(0, peer.done(chunk, 0).length);
            assertArrayEquals(data, peer.done(chunk + 1, 0));
            rig.leave();
        }
    }

    @Test
    void shouldGiveAChunkBackWithTheErrorOfItsCopy() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP); StripePeer peer = new StripePeer(rig)) {
            Guest guest = rig.guest();
            int chunk = peer.joined();
            long memory = guest.allocate(1000);
            toHost(guest, memory + 1, 1000, 0, chunk); // reaches beyond the allocation
            assertEquals(0, peer.done(chunk, CUresult.CUDA_ERROR_INVALID_VALUE).length);
            toHost(guest, memory, 1000, 0, chunk);
            assertEquals(1000, peer.done(chunk, 0).length);
            rig.leave();
        }
    }

    @Test
    void shouldServeEachStripeByItself() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            List<StripePeer> peers = new ArrayList<>();
            for (int i = 0; i < RecordLayout.MAX_STRIPES; i++) {
                StripePeer peer = new StripePeer(rig);
                assertEquals(RecordLayout.FIRST_STRIPE_CHUNK + i * RecordLayout.STRIPE_CHUNKS, peer.joined());
                peers.add(peer);
            }
            try (StripePeer oneTooMany = new StripePeer(rig)) {
                assertTrue(oneTooMany.isClosed());
            }
            long memory = guest.allocate(peers.size() * 100L);
            byte[] data = Guest.random(peers.size() * 100);
            for (int i = peers.size() - 1; i >= 0; i--) {
                int chunk = RecordLayout.FIRST_STRIPE_CHUNK + i * RecordLayout.STRIPE_CHUNKS;
                peers.get(i).fill(chunk, Arrays.copyOfRange(data, 100 * i, 100 * i + 100));
                toDevice(guest, memory + 100L * i, 100, 0, chunk);
                peers.get(i).done(chunk, 0);
            }
            assertArrayEquals(data, guest.read(memory, data.length, 0));
            peers.get(3).close(); // the others stay
            peers.get(4).fill(RecordLayout.FIRST_STRIPE_CHUNK + 4 * RecordLayout.STRIPE_CHUNKS, data);
            rig.leave();
            for (StripePeer peer : peers) {
                peer.close();
            }
        }
    }

    /** A breach of the rules by a guest with one stripe. */
    private interface Offence {
        void commit(Guest guest, StripePeer peer, int first, long memory) throws IOException;
    }

    private static void expectRefusal(String reason, Offence offence) throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP); StripePeer peer = new StripePeer(rig)) {
            Guest guest = rig.guest();
            offence.commit(guest, peer, peer.joined(), guest.allocate(1000));
            String lost = guest.reasonOfLoss();
            assertTrue(lost.contains(reason), lost);
            guest.close();
            rig.expect("ended");
            rig.join();
            assertEquals(1, rig.lastStats().path("refusedRecords").asLong());
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    @Test
    void shouldRefuseCopiesOutsideTheChunksOfTheSession() throws IOException {
        String rule = "must lie in a chunk";
        expectRefusal(rule, (guest, peer, first, memory) -> toDevice(guest, memory, 8, 0,
            first + RecordLayout.STRIPE_CHUNKS)); // of a stripe that there is not
        expectRefusal(rule, (guest, peer, first, memory) -> guest.send(CudaOpcodes.hwsCopyHtoDShared, Guest.CREDITED,
            memory, CHUNK_BYTES, 8, 0, first));
        expectRefusal(rule, (guest, peer, first, memory) -> guest.send(CudaOpcodes.hwsCopyDtoHShared, Guest.CREDITED,
            memory, -8, 8, 0, first));
        expectRefusal("must have a region", (guest, peer, first, memory) -> toDevice(guest, memory, 8, 0,
            first + RecordLayout.MAX_STRIPES * RecordLayout.STRIPE_CHUNKS));
    }

    /** Otherwise the answers that a guest does not read would fill the worker's memory. */
    @Test
    void shouldRefuseAChunkThatACopyStillHas() throws IOException {
        expectRefusal("must lie in a chunk", (guest, peer, first, memory) -> {
            guest.send(Guest.HOST_FUNCTION, Guest.CREDITED, 0, CALLBACK_ID);
            toHost(guest, memory, 8, 0, first);
            toHost(guest, memory, 8, 0, first);
        });
    }

    @Test
    void shouldRefuseRecordsThatAreNoFillOfTheStripe() throws IOException {
        String rule = "must send FILL";
        byte[] data = new byte[8];
        int[] chunks = {0, RecordLayout.FIRST_STRIPE_CHUNK - 1,
            RecordLayout.FIRST_STRIPE_CHUNK + RecordLayout.STRIPE_CHUNKS, -1};
        for (int chunk : chunks) {
            expectRefusal(rule, (guest, peer, first, memory) -> peer.send(RecordLayout.CONTROL_FILL, chunk, 8, data));
        }
        expectRefusal(rule, (guest, peer, first, memory) -> peer.send(RecordLayout.CONTROL_DONE, first, 8, data));
        for (int stated : new int[] {0, -1, 9, 1 << 30}) {
            expectRefusal(rule,
                (guest, peer, first, memory) -> peer.send(RecordLayout.CONTROL_FILL, first, stated, data));
        }
        // Without the bytes: the worker ends the connection at the header, while a long write may still run.
        expectRefusal(rule, (guest, peer, first, memory) -> peer.begin(first, CHUNK_BYTES + 8));
    }

    @Test
    void shouldEndWhileAStripeIsHalfWayThroughARecord() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP); StripePeer peer = new StripePeer(rig)) {
            int first = peer.joined();
            ByteBuffer record = ByteBuffer.allocate(FILL_BYTES).order(ByteOrder.LITTLE_ENDIAN);
            record.putInt(RecordLayout.LENGTH_OFFSET, FILL_BYTES + 4096);
            record.putInt(RecordLayout.OPCODE_OFFSET, RecordLayout.CONTROL_FILL);
            record.putInt(RecordLayout.HEADER_BYTES + RecordLayout.FILL_CHUNK_OFFSET, first);
            record.putInt(RecordLayout.HEADER_BYTES + RecordLayout.FILL_BYTES_OFFSET, 4096);
            peer.sendRaw(record.array());
            rig.leave();
        }
    }

    @Test
    void shouldEndWhileTheGuestReadsNoAnswers() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP); StripePeer peer = new StripePeer(rig)) {
            Guest guest = rig.guest();
            int first = peer.joined();
            long memory = guest.allocate(CHUNK_BYTES);
            // More than the sockets' buffers hold, so that the stripe's sender waits.
            for (int chunk = first; chunk < first + RecordLayout.STRIPE_CHUNKS; chunk++) {
                toHost(guest, memory, CHUNK_BYTES, 0, chunk);
            }
            guest.synchronize(0);
            rig.leave();
        }
    }
}
