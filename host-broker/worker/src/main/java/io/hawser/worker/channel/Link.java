package io.hawser.worker.channel;

import io.hawser.shm.RecordWriter;
import io.hawser.worker.memory.StagingPool.Staging;
import java.util.concurrent.Executor;

/**
 * The way between a session and its guest, by whatever carrier, and the thread on which the session lives: the session
 * thread. Methods are for that thread where they do not say otherwise.
 */
public interface Link extends Executor {
    /**
     * Runs a task on the session thread, after those that came before. Any thread; never runs it in the caller.
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
     * @param task what to run.
     * @param delayMs time to wait before.
     */
    void schedule(Runnable task, long delayMs);

    /**
     * Begins to receive.
     *
     * @param handler takes the guest's records.
     */
    void open(RecordHandler handler);

    /**
     * Appends a record behind those appended before. It may stay here until {@link #flush}.
     *
     * @param record a writer after its {@code end()}; free for other use afterwards.
     * @param lengthBytes what {@code end()} gave.
     */
    void append(RecordWriter record, int lengthBytes);

    /**
     * Appends a record that ends in a piece of a copy, which is sent from where it lies.
     *
     * @param prefix what comes before the piece: a writer after its {@code end()}.
     * @param prefixBytes what {@code end()} gave.
     * @param piece holds the bytes at its start, in whole multiples of 8; untouched until {@code sent}.
     * @param bytes their number, over 0; what follows up to a multiple of 8 is sent as zeros.
     * @param sent run when the bytes have left or never will, perhaps by this method.
     */
    void appendData(RecordWriter prefix, int prefixBytes, Staging piece, int bytes, Runnable sent);

    /** Sends what was appended. */
    void flush();

    /**
     * What was appended and the guest has not read yet, without pieces of copies, which are bounded elsewhere.
     *
     * @return bytes, including a small cost for each write; what lies in a buffer of fixed size need not count.
     */
    long unreadBytes();

    /** Receives nothing until the guest has read what waits for it. */
    void pauseUntilRead();

    /** Receives nothing more: the session has ended. What still comes is dropped. */
    void discard();

    /** Gives the memory of a record back that was received in part. After {@link #discard} or the guest's end. */
    void dropPartial();

    /** Ends the connection in order: the guest gets time, but not much, to read what was sent. After a flush. */
    void leave();

    /** Ends the connection. */
    void close();

    /**
     * Waits until the connection has ended. Any thread but the session's.
     *
     * @param limitMs at most so long.
     */
    void awaitClosed(long limitMs);

    /**
     * Ends the session thread after what it was asked to run, and frees what this holds. Any thread but the session's.
     *
     * @param limitMs waits at most so long for it.
     */
    void shutdown(long limitMs);
}
