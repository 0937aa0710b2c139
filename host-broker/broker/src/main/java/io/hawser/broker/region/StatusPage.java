package io.hawser.broker.region;

import io.hawser.shm.region.RegionLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * The status in a region's header, for guests that read it without a session. A reader retries when the sequence number
 * is odd or has changed during the read. Event loop only.
 */
final class StatusPage {
    /** Longest text in bytes of UTF-8. */
    static final int MAX_BYTES = RegionLayout.HEADER_STATUS_BYTES;

    private static final VarHandle INT = ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();

    private long sequence;
    private String shown = "";

    /** Writes a text, unless it is already there. */
    void put(MemorySegment region, String text) {
        if (text.equals(shown)) {
            return;
        }
        byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
        if (utf8.length > MAX_BYTES) {
            throw new IllegalArgumentException("a status must fit into the header: bytes=" + utf8.length + " max="
                + MAX_BYTES);
        }
        // Pairs with the acquire loads of hws_status.c: first odd, then the bytes, then even.
        LONG.setOpaque(region, (long) RegionLayout.HEADER_STATUS_SEQUENCE_OFFSET, ++sequence);
        VarHandle.storeStoreFence();
        MemorySegment.copy(utf8, 0, region, ValueLayout.JAVA_BYTE, RegionLayout.HEADER_STATUS_OFFSET, utf8.length);
        INT.setOpaque(region, (long) RegionLayout.HEADER_STATUS_LENGTH_OFFSET, utf8.length);
        LONG.setRelease(region, (long) RegionLayout.HEADER_STATUS_SEQUENCE_OFFSET, ++sequence);
        shown = text;
    }
}
