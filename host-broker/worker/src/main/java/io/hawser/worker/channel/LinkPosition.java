package io.hawser.worker.channel;

import java.lang.foreign.MemorySegment;

/**
 * Where a link has stopped, so that another worker can go on there.
 *
 * @param sequence number of the record that comes next, or whose beginning is {@code partial}.
 * @param partial the bytes of this record that were taken already.
 * @param partialCredit credit that was charged for it.
 * @param commandPosition end of the bytes that were taken out of the ring of commands; 0 for a socket.
 * @param replyPosition end of the bytes in the ring of replies; 0 for a socket.
 * @param replyHead where the guest last was in that ring; 0 for a socket.
 */
public record LinkPosition(long sequence, MemorySegment partial, long partialCredit, long commandPosition,
    long replyPosition, long replyHead) {}
