package io.hawser.worker.session;

import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.SealedMemory;
import io.hawser.worker.control.WorkerMessage;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.util.Collection;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * Device code of earlier sessions of the same vGPU, which the broker keeps. The worker gets an image by its digest from
 * the broker instead of the guest, and offers new images to the broker. It checks the content that it gets, because
 * another session's worker wrote it. Session thread, except where a method names another.
 */
public final class SharedImages {
    /** For a session without a broker: it has no images and offers none. */
    public static final SharedImages NONE = new SharedImages(Set.of(), null, Runnable::run);

    private static final Logger LOG = System.getLogger(SharedImages.class.getName());
    /** The broker ends a worker that sends more than 200 messages in a second; other messages get the rest. */
    private static final int MAX_MESSAGES_A_SECOND = 60;
    private static final int MAX_OFFERS = 1024; // per session; stops a guest that would make up images without end

    private record Fetch(MemorySegment target, Consumer<Boolean> done) {}

    private final Set<String> known;
    private final Consumer<WorkerMessage> broker;
    private final Executor session;
    private final Map<String, Fetch> fetching = new ConcurrentHashMap<>();
    private final Set<String> offered = new HashSet<>();
    private long windowNs = System.nanoTime();
    private int messagesInWindow;

    /**
     * Starts with the images that the broker listed for the session.
     *
     * @param known digests of the images that it keeps for the vGPU, in lower-case hexadecimal.
     * @param broker sends a message to the broker, on any thread; null without a broker.
     * @param session runs tasks on the session thread.
     */
    public SharedImages(Collection<String> known, Consumer<WorkerMessage> broker, Executor session) {
        this.known = new HashSet<>(known);
        this.broker = broker;
        this.session = session;
    }

    /**
     * Whether the broker may have an image.
     *
     * @param content its digest.
     * @return false when the guest has to send it.
     */
    boolean has(String content) {
        return known.contains(content) && !fetching.containsKey(content) && reserveMessages();
    }

    /**
     * Asks the broker for an image, after {@link #has} has returned true.
     *
     * @param content its digest.
     * @param target receives the whole image; stays valid until {@code done}.
     * @param done called on the session thread: true when the image is there, false when the guest has to send it after
     *     all.
     */
    void fetch(String content, MemorySegment target, Consumer<Boolean> done) {
        fetching.put(content, new Fetch(target, done));
        broker.accept(new WorkerMessage.Want(content));
    }

    private void end(String content, boolean isThere) {
        Fetch fetch = fetching.remove(content);
        if (!isThere) {
            known.remove(content);
        }
        fetch.done.accept(isThere);
    }

    /**
     * Takes the broker's reply with an image. Control thread.
     *
     * @param content the requested digest.
     * @param bytes its length, as the broker knows it.
     * @param descriptor its sealed memory; closed by this method.
     * @throws IOException if the session did not ask for it.
     */
    public void arrived(String content, long bytes, int descriptor) throws IOException {
        try {
            Fetch fetch = expected(content);
            boolean fits = bytes == fetch.target.byteSize();
            if (fits) {
                SealedMemory.read(descriptor, fetch.target);
                fits = HexFormat.of().formatHex(BlobStore.sha256(fetch.target)).equals(content);
            }
            if (!fits) {
                LOG.log(Level.WARNING, "an image from the broker has the wrong length or digest: sha256={0} bytes={1}",
                    content, Long.toString(bytes));
                broker.accept(new WorkerMessage.Unfit(content));
            }
            boolean isThere = fits;
            session.execute(() -> end(content, isThere));
        } finally {
            Descriptors.close(descriptor);
        }
    }

    /**
     * Takes the broker's reply that it no longer has an image. Control thread.
     *
     * @param content the requested digest.
     * @throws IOException if the session did not ask for it.
     */
    public void missing(String content) throws IOException {
        expected(content);
        session.execute(() -> end(content, false));
    }

    private Fetch expected(String content) throws IOException {
        Fetch fetch = fetching.get(content);
        if (fetch == null) {
            throw new IOException("an image must have been asked for: sha256=" + content);
        }
        return fetch;
    }

    /**
     * Offers an image to the broker, after the GPU has loaded it as code. Other bytes of a guest must not fill the
     * store. The broker replies when it wants the image.
     *
     * @param content its digest, in lower-case hexadecimal.
     * @param bytes its length.
     */
    public void offer(String content, long bytes) {
        if (broker != null && offered.size() < MAX_OFFERS && !known.contains(content) && reserveMessages()
            && offered.add(content)) {
            broker.accept(new WorkerMessage.Image(content, bytes));
        }
    }

    /**
     * Writes an image that the broker wants. Control thread.
     *
     * @param content its digest.
     * @param descriptor memory of its length to write to; closed by this method.
     * @param blobs the session's images.
     */
    public void store(String content, int descriptor, BlobStore blobs) {
        session.execute(() -> {
            MemorySegment bytes = offered.contains(content) ? blobs.pin(content) : null;
            // The session has dropped the image since; the empty digest makes the broker keep nothing.
            if (bytes == null) {
                Descriptors.close(descriptor);
                broker.accept(new WorkerMessage.Stored(""));
                return;
            }
            Thread.ofPlatform().daemon().name("image-writer").start(() -> write(content, bytes, descriptor, blobs));
        });
    }

    private void write(String content, MemorySegment bytes, int descriptor, BlobStore blobs) {
        boolean isWritten = false;
        try {
            SealedMemory.write(descriptor, bytes);
            isWritten = true;
        } catch (IOException e) {
            LOG.log(Level.WARNING, "an image cannot be given to the broker: {0}", e.getMessage());
        } finally {
            Descriptors.close(descriptor);
            session.execute(() -> blobs.unpin(content));
        }
        broker.accept(new WorkerMessage.Stored(isWritten ? content : ""));
    }

    private boolean reserveMessages() {
        long now = System.nanoTime();
        if (now - windowNs > TimeUnit.SECONDS.toNanos(1)) {
            windowNs = now;
            messagesInWindow = 0;
        }
        messagesInWindow += 2; // this message, and the one that follows the reply
        return messagesInWindow <= MAX_MESSAGES_A_SECOND;
    }
}
