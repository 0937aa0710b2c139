package io.hawser.worker.session;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Device code images. A complete image is kept under its digest, so that a guest that loads it again need not send it.
 * Session thread only.
 */
public final class BlobStore {
    /**
     * The largest image; stops a guest that would allocate memory of any size. PyTorch's largest library has less than
     * half.
     */
    public static final long MAX_BLOB_BYTES = 1L << 30;
    /** Memory of all images. The store drops the least recently used complete images to stay within it. */
    public static final long MAX_TOTAL_BYTES = 1L << 30;
    /** Ids that a guest may hold; each costs an entry here. */
    public static final int MAX_IDS = 1 << 16;

    private static final int SHA256_BYTES = 32;

    private final Map<Long, Blob> byId = new HashMap<>();
    private final LinkedHashMap<String, Blob> byContent = new LinkedHashMap<>(16, 0.75f, true);
    private long totalBytes;

    /** Result of a request. */
    public enum Outcome {
        /** Done. */
        OK,
        /** The store has the content: the guest need not send it. */
        KNOWN,
        /** The store is full: the guest gets CUDA_ERROR_OUT_OF_MEMORY. */
        FULL,
        /** No correct guest sends this: the session ends. */
        MALFORMED
    }

    private static final class Blob {
        final String content;
        final byte[] sha256;
        final Arena arena = Arena.ofShared();
        final MemorySegment bytes;
        final MessageDigest digest = sha256();
        long received;
        boolean fetching; // the broker provides the content: the guest must send nothing
        boolean complete;
        int pins;
        int readers; // other threads that read it; each also counts as a pin

        Blob(byte[] sha256, long totalBytes) {
            this.sha256 = sha256;
            this.content = HexFormat.of().formatHex(sha256);
            this.bytes = arena.allocate(totalBytes, 8);
        }
    }

    /**
     * Begins a blob, or finds a stored one with the same content.
     *
     * @param blobId chosen by the guest, not in use.
     * @param bytes its length.
     * @param sha256 32 bytes.
     * @return OK, KNOWN, FULL or MALFORMED.
     */
    public Outcome stage(long blobId, long bytes, byte[] sha256) {
        if (blobId == 0 || byId.containsKey(blobId) || sha256.length != SHA256_BYTES || bytes <= 0) {
            return Outcome.MALFORMED;
        }
        if (bytes > MAX_BLOB_BYTES || byId.size() >= MAX_IDS) {
            return Outcome.FULL;
        }
        Blob known = byContent.get(HexFormat.of().formatHex(sha256));
        if (known != null) {
            if (known.bytes.byteSize() != bytes) {
                return Outcome.MALFORMED;
            }
            byId.put(blobId, known);
            return Outcome.KNOWN;
        }
        if (!makeRoom(bytes)) {
            return Outcome.FULL;
        }
        byId.put(blobId, new Blob(sha256.clone(), bytes));
        totalBytes += bytes;
        return Outcome.OK;
    }

    /**
     * Takes a piece. Pieces must be in order and without gaps. After the last one, the content must have the announced
     * digest.
     *
     * @param blobId id of a blob that {@link #stage} began.
     * @param offsetBytes offset of the piece.
     * @param piece its bytes.
     * @return OK or MALFORMED.
     */
    public Outcome append(long blobId, long offsetBytes, MemorySegment piece) {
        Blob blob = byId.get(blobId);
        if (blob == null || blob.complete || blob.fetching || offsetBytes != blob.received || piece.byteSize() == 0
            || piece.byteSize() > blob.bytes.byteSize() - blob.received) {
            return Outcome.MALFORMED;
        }
        MemorySegment.copy(piece, 0, blob.bytes, offsetBytes, piece.byteSize());
        blob.digest.update(piece.asByteBuffer());
        blob.received += piece.byteSize();
        if (blob.received < blob.bytes.byteSize()) {
            return Outcome.OK;
        }
        if (!Arrays.equals(blob.digest.digest(), blob.sha256)) {
            return Outcome.MALFORMED;
        }
        complete(blob);
        return Outcome.OK;
    }

    private void complete(Blob blob) {
        blob.complete = true;
        Blob twin = byContent.get(blob.content);
        if (twin != null) { // two ids with the same content were begun before either was complete: keep one copy
            byId.replaceAll((id, held) -> held == blob ? twin : held);
            drop(blob);
        } else {
            byContent.put(blob.content, blob);
        }
    }

    /**
     * Lets the caller fill a new blob instead of the guest, until {@link #endFetch}.
     *
     * @param blobId its id.
     * @return its memory, valid until then.
     */
    MemorySegment beginFetch(long blobId) {
        Blob blob = byId.get(blobId);
        blob.fetching = true;
        return blob.bytes;
    }

    /**
     * Ends {@link #beginFetch}.
     *
     * @param blobId its id.
     * @param isThere whether the content has been written and has its digest; else the guest sends it.
     */
    void endFetch(long blobId, boolean isThere) {
        Blob blob = byId.get(blobId);
        blob.fetching = false;
        if (isThere) {
            complete(blob);
        }
    }

    /**
     * Keeps a content for another thread until {@link #unpin}.
     *
     * @param content its key.
     * @return its bytes; null when the store no longer has it.
     */
    MemorySegment pin(String content) {
        Blob blob = byContent.get(content);
        if (blob == null) {
            return null;
        }
        blob.pins++;
        blob.readers++;
        return blob.bytes;
    }

    /**
     * Ends {@link #pin}.
     *
     * @param content its key.
     */
    void unpin(String content) {
        Blob blob = byContent.get(content);
        if (blob != null) { // otherwise the session has ended meanwhile
            blob.pins--;
            blob.readers--;
        }
    }

    /** The SHA-256 digest of some memory. */
    static byte[] sha256(MemorySegment bytes) {
        MessageDigest digest = sha256();
        digest.update(bytes.asByteBuffer());
        return digest.digest();
    }

    /**
     * Removes a blob's id, because a load uses the id up. The content stays pinned until {@link #release}.
     *
     * @param blobId its id.
     * @return the content's key for {@link #bytes} and {@link #release}, or null when no complete blob has this id.
     */
    public String consume(long blobId) {
        Blob blob = byId.get(blobId);
        if (blob == null || !blob.complete) {
            return null;
        }
        byId.remove(blobId);
        blob.pins++;
        return blob.content;
    }

    /**
     * The bytes of a consumed blob.
     *
     * @param content key from {@link #consume}.
     * @return its bytes, valid until released.
     */
    public MemorySegment bytes(String content) {
        return byContent.get(content).bytes;
    }

    /**
     * Ends the use of a consumed blob.
     *
     * @param content key from {@link #consume}.
     */
    public void release(String content) {
        byContent.get(content).pins--;
    }

    /** Whether an image is being sent, or was sent and not loaded yet. */
    boolean hasStaged() {
        return !byId.isEmpty();
    }

    /** Frees all images, except those that another thread still uses. */
    public void close() {
        // Other threads may still read or write these images. The process exits soon and frees them.
        byId.values().stream().filter(blob -> !blob.complete && !blob.fetching).forEach(this::drop);
        byId.clear();
        byContent.values().stream().filter(blob -> blob.readers == 0).forEach(this::drop);
        byContent.clear();
    }

    /**
     * Memory of all images.
     *
     * @return bytes.
     */
    public long totalBytes() {
        return totalBytes;
    }

    /** Drops complete images that no id refers to, until {@code bytes} more bytes fit. */
    private boolean makeRoom(long bytes) {
        Iterator<Blob> oldest = byContent.values().iterator();
        while (totalBytes + bytes > MAX_TOTAL_BYTES && oldest.hasNext()) {
            Blob blob = oldest.next();
            if (blob.pins == 0 && !byId.containsValue(blob)) {
                oldest.remove();
                drop(blob);
            }
        }
        return totalBytes + bytes <= MAX_TOTAL_BYTES;
    }

    private void drop(Blob blob) {
        totalBytes -= blob.bytes.byteSize();
        blob.arena.close();
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }
}
