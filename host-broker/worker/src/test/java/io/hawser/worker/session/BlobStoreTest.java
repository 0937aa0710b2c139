package io.hawser.worker.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.hawser.worker.session.BlobStore.Outcome;
import java.lang.foreign.MemorySegment;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class BlobStoreTest {
    private final BlobStore store = new BlobStore();
    private final byte[] content = {1, 2, 3, 4, 5};

    @AfterEach
    void shouldHoldNothingAfterClose() {
        store.close();
        assertEquals(0, store.totalBytes());
    }

    private static byte[] sha256(byte[] bytes) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(bytes);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    private void put(long id) {
        assertEquals(Outcome.OK, store.stage(id, content.length, sha256(content)));
        assertEquals(Outcome.OK, store.append(id, 0, MemorySegment.ofArray(content)));
    }

    @Test
    void shouldRecogniseCompleteContent() {
        put(1);
        assertEquals(Outcome.KNOWN, store.stage(2, content.length, sha256(content)));
        String key = store.consume(2);
        assertEquals(5, store.bytes(key).get(java.lang.foreign.ValueLayout.JAVA_BYTE, 4));
        store.release(key);
        assertNull(store.consume(2), "a load consumes the id");
        assertNotNull(store.consume(1));
    }

    @Test
    void shouldRefuseGapsOverlapsAndExcess() {
        assertEquals(Outcome.OK, store.stage(1, content.length, sha256(content)));
        MemorySegment piece = MemorySegment.ofArray(content);
        assertEquals(Outcome.MALFORMED, store.append(1, 1, piece.asSlice(1)));
        assertEquals(Outcome.MALFORMED, store.append(1, 0, piece.asSlice(0, 0)));
        assertEquals(Outcome.OK, store.append(1, 0, piece.asSlice(0, 3)));
        assertEquals(Outcome.MALFORMED, store.append(1, 0, piece.asSlice(0, 3)));
        assertEquals(Outcome.MALFORMED, store.append(1, 3, piece));
        assertEquals(Outcome.OK, store.append(1, 3, piece.asSlice(3)));
        assertEquals(Outcome.MALFORMED, store.append(1, 5, piece));
    }

    @Test
    void shouldRefuseIdInUseAndImpossibleLengths() {
        put(1);
        assertEquals(Outcome.MALFORMED, store.stage(1, 5, sha256(new byte[0])));
        assertEquals(Outcome.MALFORMED, store.stage(0, 5, sha256(content)));
        assertEquals(Outcome.MALFORMED, store.stage(2, 0, sha256(new byte[0])));
        assertEquals(Outcome.MALFORMED, store.stage(2, -1, sha256(content)));
        assertEquals(Outcome.MALFORMED, store.stage(2, 6, sha256(content)), "known content has another length");
        assertEquals(Outcome.FULL, store.stage(2, BlobStore.MAX_BLOB_BYTES + 1, sha256(new byte[1])));
    }

    @Test
    void shouldRefuseADigestOfAnotherLength() {
        assertEquals(Outcome.MALFORMED, store.stage(1, 5, new byte[31]));
        assertEquals(Outcome.MALFORMED, store.stage(1, 5, new byte[33]));
        assertEquals(Outcome.MALFORMED, store.stage(1, 5, new byte[0]));
    }

    @Test
    void shouldBoundTheIdsOfAGuest() {
        put(1);
        for (long id = 2; id <= BlobStore.MAX_IDS; id++) {
            assertEquals(Outcome.KNOWN, store.stage(id, content.length, sha256(content)));
        }
        assertEquals(Outcome.FULL, store.stage(BlobStore.MAX_IDS + 1, content.length, sha256(content)));
        assertNotNull(store.consume(7));
        assertEquals(Outcome.KNOWN, store.stage(BlobStore.MAX_IDS + 1, content.length, sha256(content)));
    }

    @Test
    void shouldNotHoldMoreThanAllItsMemory() {
        assertEquals(Outcome.OK, store.stage(1, content.length, sha256(content)));
        assertEquals(Outcome.FULL, store.stage(2, BlobStore.MAX_TOTAL_BYTES, sha256(new byte[1])));
        assertEquals(content.length, store.totalBytes());
    }

    @Test
    void shouldKeepOneCopyOfTwins() {
        assertEquals(Outcome.OK, store.stage(1, content.length, sha256(content)));
        assertEquals(Outcome.OK, store.stage(2, content.length, sha256(content)));
        assertEquals(Outcome.OK, store.append(1, 0, MemorySegment.ofArray(content)));
        assertEquals(Outcome.OK, store.append(2, 0, MemorySegment.ofArray(content)));
        assertEquals(content.length, store.totalBytes());
        assertEquals(store.consume(1), store.consume(2));
    }
}
