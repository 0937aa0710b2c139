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
 * Device code that earlier sessions of the same vGPU have loaded, which the broker keeps: asked for by its digest in
 * place of the guest's bytes, and given to the broker when it is new. What comes is checked, since it was written by
 * another session's worker. Session thread, except where a method says otherwise.
 */
public final class SharedImages {
    /** For a session without a broker's images: none is known, none is offered. */
    public static final SharedImages NONE = new SharedImages(Set.of(), null, Runnable::run);

    private static final Logger LOG = System.getLogger(SharedImages.class.getName());
    /** The broker ends a worker that says more than 200 things in a second; the rest of them is for others. */
    private static final int MAX_MESSAGES_A_SECOND = 60;
    private static final int MAX_OFFERS = 1024; // of a session; a guest could make up images for ever

    private record Fetch(MemorySegment target, Consumer<Boolean> done) { }

    private final Set<String> known;
    private final Consumer<WorkerMessage> broker;
    private final Executor session;
    private final Map<String, Fetch> fetching = new ConcurrentHashMap<>();
    private final Set<String> offered = new HashSet<>();
    private long windowNs = System.nanoTime();
    private int messagesInWindow;

    /**
     * Knows what the broker has said with the session.
     *
     * @param known digests of the images that it keeps for the vGPU, in lower-case hexadecimal.
     * @param broker sends it a message, on any thread; null where there is none.
     * @param session runs on the session thread.
     */
    public SharedImages(Collection<String> known, Consumer<WorkerMessage> broker, Executor session) {
        this.known = new HashSet<>(known);
        this.broker = broker;
        this.session = session;
    }

    /**
     * Whether an image may be had from the broker.
     *
     * @param content its digest.
     * @return false when the guest has to send it.
     */
    boolean has(String content) {
        return known.contains(content) && !fetching.containsKey(content) && mayTell();
    }

    /**
     * Asks for an image that {@link #has} has promised.
     *
     * @param content its digest.
     * @param target receives it, whole; stays valid until it is done.
     * @param done told on the session thread whether it is there; false when the guest has to send it all the same.
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
     * The broker's answer: an image. Control thread.
     *
     * @param content the digest that was asked for.
     * @param bytes its length as the broker knows it.
     * @param descriptor its memory, sealed; closed by this.
     * @throws IOException if it was not asked for.
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
                LOG.log(Level.WARNING, "an image of the broker is not what was asked for: sha256={0} bytes={1}",
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
     * The broker's answer: it has the image no more. Control thread.
     *
     * @param content the digest that was asked for.
     * @throws IOException if it was not asked for.
     */
    public void missing(String content) throws IOException {
        expected(content);
        session.execute(() -> end(content, false));
    }

    private Fetch expected(String content) throws IOException {
        Fetch fetch = fetching.get(content);
        if (fetch == null) {
            throw new IOException("an image comes when it was asked for: sha256=" + content);
        }
        return fetch;
    }

    /**
     * Offers the broker an image that the GPU has taken as code; other bytes of a guest must not fill the store. The
     * broker answers when it wants the image.
     *
     * @param content its digest, in lower-case hexadecimal.
     * @param bytes its length.
     */
    public void offer(String content, long bytes) {
        if (broker != null && offered.size() < MAX_OFFERS && !known.contains(content) && mayTell()
            && offered.add(content)) {
            broker.accept(new WorkerMessage.Image(content, bytes));
        }
    }

    /**
     * The broker wants an image. Control thread.
     *
     * @param content its digest.
     * @param descriptor memory of its length to write it to; closed by this.
     * @param blobs the session's images.
     */
    public void store(String content, int descriptor, BlobStore blobs) {
        session.execute(() -> {
            MemorySegment bytes = offered.contains(content) ? blobs.pin(content) : null;
            if (bytes == null) { // dropped since; the broker keeps nothing of a worker that says so
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

    private boolean mayTell() {
        long now = System.nanoTime();
        if (now - windowNs > TimeUnit.SECONDS.toNanos(1)) {
            windowNs = now;
            messagesInWindow = 0;
        }
        messagesInWindow += 2; // what is said first, and what follows from the answer
        return messagesInWindow <= MAX_MESSAGES_A_SECOND;
    }
}
