package io.hawser.worker.channel.tcp;

import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.StreamSocket;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.channel.DataLanes;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * The stripes of a session: connections beside its own, which share the bytes of long copies (wire.md, "Stripes").
 * Session thread, except where a method says otherwise.
 */
public final class Stripes {
    private static final Logger LOG = System.getLogger(Stripes.class.getName());

    /** Memory of a stripe's chunks, in bytes. */
    public static final long BYTES = (long) RecordLayout.STRIPE_CHUNKS * RecordLayout.STRIPE_CHUNK_BYTES;

    private final List<Stripe> stripes = new CopyOnWriteArrayList<>();
    private final DataStripes data = new DataStripes();
    private Supplier<MemorySegment> allocate = () -> null;
    private Stripe.Ends ends = new Stripe.Ends(reason -> {}, reason -> {});
    private boolean isClosed; // guarded by this, together with additions

    /**
     * Sets what all stripes use. Call it once, before the first one.
     *
     * @param memory returns {@link #BYTES} for a stripe's chunks, used until {@link #close}; null when there is no
     *     memory, and the guest gets the end of the connection.
     * @param refuse ends the session, because its guest has broken a rule; any thread.
     * @param lose ends the session, because a connection has ended; any thread.
     */
    public void use(Supplier<MemorySegment> memory, Consumer<String> refuse, Consumer<String> lose) {
        allocate = memory;
        ends = new Stripe.Ends(refuse, lose);
    }

    /**
     * Adds a connection that has joined the session.
     *
     * @param descriptor its socket, which this object closes.
     */
    public synchronized void add(int descriptor) {
        Stripe stripe = make(descriptor);
        if (stripe != null) {
            stripe.start();
        }
    }

    /**
     * Adds a connection of a session that comes from another worker. That worker serves it until {@link #start}.
     *
     * @param descriptor its socket, which this object closes.
     * @param state the place where the other worker has paused.
     * @return false when the stripe cannot be made.
     */
    public synchronized boolean add(int descriptor, StripeState state) {
        Stripe stripe = make(descriptor);
        if (stripe != null) {
            stripe.resume(state);
        }
        return stripe != null;
    }

    /** Serves the connections that come from another worker. */
    public synchronized void start() {
        stripes.forEach(Stripe::start);
    }

    private Stripe make(int descriptor) {
        boolean isAllowed = !isClosed && stripes.size() < RecordLayout.MAX_STRIPES;
        MemorySegment memory = isAllowed ? allocate.get() : null;
        if (memory == null) {
            LOG.log(Level.INFO, "a stripe is refused: stripes={0} closed={1}", stripes.size(), isClosed);
            Descriptors.close(descriptor);
            return null;
        }
        try {
            Stripe stripe = new Stripe(new StreamSocket(descriptor),
                RecordLayout.FIRST_STRIPE_CHUNK + stripes.size() * RecordLayout.STRIPE_CHUNKS, memory, data, ends);
            stripes.add(stripe);
            return stripe;
        } catch (IOException e) {
            LOG.log(Level.WARNING, "a stripe cannot be used: {0}", e.getMessage());
            Descriptors.close(descriptor);
            return null;
        }
    }

    /** Stops each stripe between two records, so that another worker can go on. Any thread. */
    public synchronized void pause() throws IOException {
        for (Stripe stripe : stripes) {
            stripe.pause();
        }
    }

    /** Whether all stripes have paused, and the guest has got all that it waits for. Any thread. */
    public boolean isStill() {
        return data.isIdle() && stripes.stream().allMatch(Stripe::isStill);
    }

    /** The places where another worker goes on, while {@link #isStill}. Any thread. */
    public List<StripeState> states() {
        return stripes.stream().map(Stripe::state).toList();
    }

    /** The sockets, in the order of {@link #states}; they stay this object's. Any thread. */
    public List<Integer> descriptors() {
        return stripes.stream().map(Stripe::descriptor).toList();
    }

    /** Goes on after {@link #pause}. Any thread. */
    public void proceed() {
        stripes.forEach(Stripe::proceed);
    }

    /** Leaves the connections to another worker, which does not end them. Any thread. */
    public void leave() {
        stripes.forEach(Stripe::leave);
    }

    /** The stripes that carry DATA of copies to the guest. */
    public DataLanes data() {
        return data;
    }

    /** Whether a number is that of a stripe's chunk, whether or not there is such a stripe. */
    public static boolean isChunk(int chunk) {
        return chunk >= RecordLayout.FIRST_STRIPE_CHUNK
            && chunk < RecordLayout.FIRST_STRIPE_CHUNK + RecordLayout.MAX_STRIPES * RecordLayout.STRIPE_CHUNKS;
    }

    private static int stripeOf(int chunk) {
        return (chunk - RecordLayout.FIRST_STRIPE_CHUNK) / RecordLayout.STRIPE_CHUNKS;
    }

    /**
     * Whether the guest may use these bytes: the chunk is not in use, and they lie in it.
     *
     * @param chunk a number for which {@link #isChunk} is true.
     * @param offset in the chunk.
     * @param bytes length.
     */
    public boolean allows(int chunk, long offset, long bytes) {
        return stripeOf(chunk) < stripes.size() && !stripes.get(stripeOf(chunk)).isTaken(chunk) && offset >= 0
            && bytes >= 0 && offset <= RecordLayout.STRIPE_CHUNK_BYTES
            && bytes <= RecordLayout.STRIPE_CHUNK_BYTES - offset;
    }

    /** Bytes that {@link #allows} has accepted. */
    public MemorySegment bytes(int chunk, long offset, long bytes) {
        return stripes.get(stripeOf(chunk)).bytes(chunk).asSlice(offset, bytes);
    }

    /** Marks a chunk that {@link #allows} has accepted as used by a copy, until it is given back. */
    public void take(int chunk) {
        stripes.get(stripeOf(chunk)).take(chunk);
    }

    /**
     * Gives a taken chunk back to the guest. Never waits.
     *
     * @param chunk of a stripe that there is.
     * @param result CUresult of the copy.
     * @param bytes number of the chunk's first bytes that travel with it; 0 after a copy to the device.
     */
    public void giveBack(int chunk, int result, int bytes) {
        stripes.get(stripeOf(chunk)).giveBack(chunk, result, bytes);
    }

    /** Bytes that have come over the stripes. Any thread. */
    public long receivedBytes() {
        return stripes.stream().mapToLong(Stripe::receivedBytes).sum();
    }

    /** Bytes that went over the stripes. Any thread. */
    public long sentBytes() {
        return stripes.stream().mapToLong(Stripe::sentBytes).sum();
    }

    /** Ends all connections; later ones are refused. Any thread. */
    public synchronized void shutdown() {
        isClosed = true;
        stripes.forEach(Stripe::shutdown);
        data.shutdown();
    }

    /**
     * Waits for the threads of the stripes after {@link #shutdown}. Any thread except the session thread.
     *
     * @param limitMs the longest wait for each.
     * @return false if one still runs, and may use its memory.
     */
    public boolean close(long limitMs) {
        boolean isUnused = true;
        for (Stripe stripe : stripes) {
            isUnused &= stripe.close(limitMs);
        }
        if (isUnused) {
            data.drop();
        }
        return isUnused;
    }
}
