package io.hawser.worker.channel;

import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.memory.StagingPool.Staging;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.Executor;
import java.util.function.Consumer;

/**
 * The connection between a session and its guest, over any carrier, and the session thread. Call each method on the
 * session thread unless its comment names another thread.
 */
public interface Link extends Executor {
    /**
     * Runs a task on the session thread, after all earlier tasks. Any thread; never runs the task in the caller.
     *
     * @throws java.util.concurrent.RejectedExecutionException if the session thread has ended.
     */
    @Override
    void execute(Runnable task);

    /** Whether the caller is the session thread. Any thread. */
    boolean isSessionThread();

    /**
     * Runs a task on the session thread, once. Any thread.
     *
     * @param task the task.
     * @param delayMs time to wait first.
     */
    void schedule(Runnable task, long delayMs);

    /**
     * Starts to receive.
     *
     * @param handler takes the guest's records.
     */
    void open(RecordHandler handler);

    /**
     * Appends a record after all records appended before. The record may stay here until {@link #flush}.
     *
     * @param record a writer after its {@code end()}; the caller may reuse it afterwards.
     * @param lengthBytes result of {@code end()}.
     */
    void append(RecordWriter record, int lengthBytes);

    /**
     * Appends a record that ends with a piece of a copy. The piece is sent from its own memory.
     *
     * @param prefix the record up to the piece: a writer after its {@code end()}.
     * @param prefixBytes result of {@code end()}.
     * @param piece memory that begins with the bytes and is a multiple of 8 long; must not change until {@code sent}.
     * @param bytes their number, over 0; the padding to a multiple of 8 is sent as zeros.
     * @param sent runs when the bytes have been sent or never will be; possibly during this call.
     */
    void appendData(RecordWriter prefix, int prefixBytes, Staging piece, int bytes, Runnable sent);

    /** Memory of the guest that this link writes by itself; null where the carrier cannot. */
    default GuestMemory guestMemory() {
        return null;
    }

    /**
     * Frees memory only after this link has forgotten it.
     *
     * @param free frees the memory.
     */
    default Consumer<MemorySegment> forgetting(Consumer<MemorySegment> free) {
        GuestMemory carrier = guestMemory();
        return carrier == null ? free : memory -> {
            carrier.forget(memory);
            free.accept(memory);
        };
    }

    /** Sends all appended records. */
    void flush();

    /**
     * The appended bytes that the guest has not read yet. Pieces of copies do not count, because the copies' buffers
     * limit them.
     *
     * @return bytes, including a small overhead for each write; bytes in a buffer of fixed size need not count.
     */
    long unreadBytes();

    /** Receives nothing until the guest has read most of its unread replies. */
    void pauseUntilRead();

    /**
     * Watches for the end of the connection on a thread of its own, because the session thread may be blocked in the
     * driver. Does nothing where the broker watches the guest.
     *
     * @param hung called once if the guest has gone and the session thread has done nothing for 2 seconds since.
     */
    default void watchGuest(Runnable hung) {
        // The broker watches the locks and beats of guests that use a region.
    }

    /** Receives nothing until {@link #proceed}, and serves no input that was received. */
    void halt();

    /** Ends {@link #halt}. */
    void proceed();

    /** Whether the guest can read all that was appended and flushed. */
    boolean hasSentAll();

    /** Where this link stands, after {@link #halt}. */
    LinkPosition position();

    /**
     * As {@link #open}, for a guest that another worker has served up to a position.
     *
     * @param from where that worker's link has stopped.
     */
    void open(RecordHandler handler, LinkPosition from);

    /** Descriptor of the guest's socket, which stays this link's; -1 over a region. */
    default int socket() {
        return -1;
    }

    /** Drops all further input: the session has ended. */
    void discard();

    /**
     * Gives back the memory of a partly received record. Call it after {@link #discard} or after the guest has left.
     */
    void dropPartial();

    /** Ends the connection in order: the guest gets about a second to read the records that were sent. Flush before. */
    void leave();

    /** Ends the connection at once. */
    void close();

    /**
     * Waits until the connection has ended. Any thread except the session thread.
     *
     * @param limitMs the longest wait.
     */
    void awaitClosed(long limitMs);

    /**
     * Ends the session thread after its pending tasks, and frees this link's resources. Any thread except the session
     * thread.
     *
     * @param limitMs the longest wait.
     */
    void shutdown(long limitMs);
}
