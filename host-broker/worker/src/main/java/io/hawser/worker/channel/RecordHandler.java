package io.hawser.worker.channel;

import io.hawser.worker.memory.StagingPool.Staging;
import java.lang.foreign.MemorySegment;

/** Serves the records of a guest. Session thread only. */
public interface RecordHandler {
    /**
     * Decides on a record before its payload is received. The header has passed the general rules.
     *
     * @param header its header, valid until the next record.
     * @return false when the session has ended and receives nothing more.
     */
    boolean admit(RecordHeader header);

    /**
     * Provides memory for a record.
     *
     * @param bytes the least size.
     * @return memory that the receiver owns until {@link #record} keeps it; null when none is left.
     */
    Staging memoryFor(int bytes);

    /**
     * Takes back memory that the receiver no longer needs.
     *
     * @param memory memory from {@link #memoryFor}.
     */
    void giveBack(Staging memory);

    /**
     * Serves a complete record.
     *
     * @param header its header, valid during the call.
     * @param bytes private memory that holds the record; valid during the call.
     * @param offset the record's offset in {@code bytes}; its address is a multiple of 8.
     * @param memory memory from {@link #memoryFor} that holds only this record and that the handler may keep; null for
     *     a record of at most {@link RecordCutter#SMALL_RECORD_BYTES}, which the handler cannot keep.
     * @return whether the handler keeps the memory and now owns it.
     */
    boolean record(RecordHeader header, MemorySegment bytes, long offset, Staging memory);

    /**
     * Ends the session because of a record that no correct guest sends.
     *
     * @param reason the rule and the values.
     */
    void refuse(String reason);

    /** Called after all records of one read have been served. Sends their replies. */
    void drained();

    /**
     * Checks for finished work of the session, when the thread has nothing else to do. Does not wait.
     *
     * @return whether any work had finished.
     */
    default boolean poll() {
        return false;
    }

    /** Whether an idle thread should continue to poll instead of sleeping. */
    default boolean isWorthPolling() {
        return false;
    }

    /**
     * Announces whether the thread will call {@link #poll} frequently from now on.
     *
     * @param polled false before a sleep.
     */
    default void setPolled(boolean polled) {
    }

    /**
     * Called when the guest has left or its connection has failed.
     *
     * @param reason the cause, one line.
     */
    void gone(String reason);
}
