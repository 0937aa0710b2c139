package io.hawser.worker.channel;

import io.hawser.worker.memory.StagingPool.Staging;
import java.lang.foreign.MemorySegment;

/** What becomes of received records. Session thread only. */
public interface RecordHandler {
    /**
     * Decides on a record whose header has passed the general rules, before its payload is received.
     *
     * @param header its header, valid until the next record.
     * @return false when the session has ended and nothing more is to be received.
     */
    boolean admit(RecordHeader header);

    /**
     * Memory for records.
     *
     * @param bytes what it must hold.
     * @return memory that the receiver owns until {@link #record} keeps it; null when there is none.
     */
    Staging memoryFor(int bytes);

    /**
     * Takes back memory that the receiver does not need any more.
     *
     * @param memory what {@link #memoryFor} gave.
     */
    void giveBack(Staging memory);

    /**
     * Serves a whole record.
     *
     * @param header its header, valid during the call.
     * @param bytes private memory that holds the record; valid during the call.
     * @param offset where the record begins, at a multiple of 8 of the address space.
     * @param memory what {@link #memoryFor} gave, when the record has it to itself and the handler may keep it; null
     *     for a record of at most {@link RecordCutter#SMALL_RECORD_BYTES}, which the handler cannot keep.
     * @return whether the handler keeps the memory, which is then its own.
     */
    boolean record(RecordHeader header, MemorySegment bytes, long offset, Staging memory);

    /**
     * Ends the session for a record that no honest guest sends.
     *
     * @param reason the rule and the values.
     */
    void refuse(String reason);

    /** What was received in one go has been served: send what it has produced. */
    void drained();

    /**
     * Looks for ends of the session's work, when there is nothing else to do; waits for nothing.
     *
     * @return whether there were any.
     */
    default boolean poll() {
        return false;
    }

    /** Whether a thread with nothing to do should rather go on to poll than sleep. */
    default boolean isWorthPolling() {
        return false;
    }

    /**
     * Says whether {@link #poll} is called often from now on.
     *
     * @param polled false before a sleep.
     */
    default void polled(boolean polled) {
    }

    /**
     * The guest has gone.
     *
     * @param reason how, one line.
     */
    void gone(String reason);
}
