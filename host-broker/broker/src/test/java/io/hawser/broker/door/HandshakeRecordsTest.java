package io.hawser.broker.door;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.hawser.broker.machine.LogLimiter;
import io.hawser.shm.wire.HandshakeProof;
import io.hawser.shm.wire.RecordLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

class HandshakeRecordsTest {
    private static final byte[] HELLO = TestGuest.hello(1, 42, "alice");

    /** The first bytes of a record, padded to a multiple of 8, with a length field that fits. */
    private static byte[] truncated(byte[] record, int lengthBytes) {
        byte[] shorter = Arrays.copyOf(record, lengthBytes);
        ByteBuffer.wrap(shorter).order(ByteOrder.LITTLE_ENDIAN).putInt(0, lengthBytes);
        return shorter;
    }

    @Test
    void shouldReadHelloAndProof() throws Exception {
        HandshakeRecords.Hello hello = HandshakeRecords.hello(HELLO);
        assertEquals("alice", hello.keyId());
        assertEquals(4711, hello.pid());
        assertEquals(42, hello.descriptionHash());
        assertEquals("guest-1", hello.host());
        assertArrayEquals(TestGuest.NONCE, hello.clientNonce());
        assertArrayEquals(Arrays.copyOfRange(HELLO, RecordLayout.HEADER_BYTES, HELLO.length), hello.payload());
        byte[] proof = new byte[RecordLayout.PROOF_BYTES];
        Arrays.fill(proof, (byte) 7);
        assertArrayEquals(proof, HandshakeRecords.proof(TestGuest.proof(proof)).bytes());
    }

    @Test
    void shouldReadOfferOfRdma() throws Exception {
        byte[] proof = new byte[RecordLayout.PROOF_BYTES];
        Arrays.fill(proof, (byte) 7);
        byte[] offer = new byte[RecordLayout.RDMA_END_BYTES];
        Arrays.fill(offer, (byte) 9);
        HandshakeRecords.Proof open = HandshakeRecords.proof(TestGuest.open(proof, offer));
        assertEquals(HandshakeProof.Purpose.SESSION, open.purpose());
        assertArrayEquals(proof, open.bytes());
        assertArrayEquals(offer, open.offer());
        assertNull(HandshakeRecords.proof(TestGuest.proof(proof)).offer());
    }

    @Test
    void shouldRejectOffersOfOtherLengths() {
        for (int length : new int[] {0, 1, 56, 63, 65, 72, 128, 2048}) {
            byte[] open = TestGuest.open(new byte[RecordLayout.PROOF_BYTES], new byte[length]);
            assertThrows(HandshakeRecords.MalformedException.class, () -> HandshakeRecords.proof(open),
                "bytes=" + length);
        }
        byte[] whole = TestGuest.open(new byte[RecordLayout.PROOF_BYTES], new byte[RecordLayout.RDMA_END_BYTES]);
        for (int length = RecordLayout.HEADER_BYTES; length < whole.length; length++) {
            byte[] part = truncated(whole, length);
            assertThrows(HandshakeRecords.MalformedException.class, () -> HandshakeRecords.proof(part),
                "bytes=" + length);
        }
    }

    @Test
    void shouldRejectTruncatedRecordsOfEveryLength() {
        byte[] proof = TestGuest.proof(new byte[RecordLayout.PROOF_BYTES]);
        for (int length = RecordLayout.HEADER_BYTES; length < HELLO.length; length++) {
            byte[] hello = truncated(HELLO, length);
            assertThrows(HandshakeRecords.MalformedException.class, () -> HandshakeRecords.hello(hello),
                "bytes=" + length);
        }
        for (int length = RecordLayout.HEADER_BYTES; length < proof.length; length++) {
            byte[] part = truncated(proof, length);
            assertThrows(HandshakeRecords.MalformedException.class, () -> HandshakeRecords.proof(part),
                "bytes=" + length);
        }
    }

    @Test
    void shouldRejectTrailingBytes() {
        assertThrows(HandshakeRecords.MalformedException.class,
            () -> HandshakeRecords.hello(truncated(HELLO, HELLO.length + 8)));
    }

    @Test
    void shouldRejectOtherOpcodesSequencesAndFlags() {
        for (int offset : new int[] {RecordLayout.OPCODE_OFFSET, RecordLayout.SEQUENCE_OFFSET,
            RecordLayout.FLAGS_OFFSET, RecordLayout.THREAD_OFFSET, RecordLayout.CONTEXT_OFFSET}) {
            byte[] record = HELLO.clone();
            record[offset]++;
            assertThrows(HandshakeRecords.MalformedException.class, () -> HandshakeRecords.hello(record),
                "at=" + offset);
        }
    }

    @Test
    void shouldRejectNamesOverTheirLimit() {
        assertThrows(HandshakeRecords.MalformedException.class,
            () -> HandshakeRecords.hello(TestGuest.hello(1, 42, "k".repeat(65))));
    }

    @Test
    void shouldCountPlacesUntilBothPartsAreGivenBack() {
        ConnectionLimits limits = new ConnectionLimits(1, 2);
        ConnectionLimits.Place first = limits.enter("a");
        assertEquals(null, limits.excess("a"));
        ConnectionLimits.Place second = limits.enter("a");
        assertEquals("half-open connections must be at most 1", limits.excess("a"));
        first.endHandshake();
        first.endHandshake();
        assertEquals(null, limits.excess("a"));
        ConnectionLimits.Place third = limits.enter("a");
        second.endHandshake();
        assertEquals("connections of one peer must be at most 2", limits.excess("a"));
        first.release();
        first.release();
        assertEquals(null, limits.excess("a"));
        second.release();
        third.release();
        assertEquals(0, limits.halfOpen());
        assertEquals(0, limits.peers());
    }

    @Test
    void shouldLogOnlySoManyLinesASecond() {
        long[] now = {0};
        LogLimiter limiter = new LogLimiter(2, () -> now[0]);
        assertEquals(true, limiter.allows());
        assertEquals(true, limiter.allows());
        assertEquals(false, limiter.allows());
        now[0] += 1_000_000_001L;
        assertEquals(true, limiter.allows());
        assertEquals(1, limiter.takeDropped());
        assertEquals(0, limiter.takeDropped());
    }
}
