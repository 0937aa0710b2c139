package io.hawser.cuda.backend;

import java.lang.foreign.MemorySegment;

/**
 * Words of memory that processes share: streams write them and wait for them. Methods return a CUresult. Session
 * thread.
 */
public interface Signals {
    /** Entries of a stream's queue that {@link #await} takes at most. {@link #write} takes one. */
    int AWAIT_ENTRIES = 2;

    /**
     * Lets streams use a page of shared memory.
     *
     * @param page 4096 bytes at the start of a page, mapped until {@link #close}.
     */
    int open(MemorySegment page);

    /**
     * Ends the use of a page; no stream uses it any more.
     *
     * @param page the page of {@link #open}.
     */
    int close(MemorySegment page);

    /**
     * Writes a number when the stream's work so far is done and visible to other processes.
     *
     * @param stream native stream of the current context.
     * @param word 4 bytes of an open page.
     * @param number the number.
     */
    int write(long stream, MemorySegment word, int number);

    /**
     * Makes the later work of a stream wait until a word's difference to a number is not negative.
     *
     * @param stream native stream of the current context.
     * @param word 4 bytes of an open page.
     * @param number the number.
     */
    int await(long stream, MemorySegment word, int number);
}
