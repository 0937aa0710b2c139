package io.hawser.hypervisor.xen;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * A message of XenStore's protocol, a request or an answer.
 *
 * <pre>
 *   0        4            8                12       16
 *   +--------+------------+----------------+--------+---------------------+
 *   | type   | request id | transaction id | length | payload             |
 *   +--------+------------+----------------+--------+---------------------+
 * </pre>
 *
 * Numbers are unsigned and in the machine's byte order: both ends are on one machine.
 *
 * @param transaction 0 outside of one.
 * @param payload at most {@link #MAX_PAYLOAD_BYTES} bytes.
 */
record XenStoreMessage(int type, int request, int transaction, byte[] payload) {
    // xen/include/public/io/xs_wire.h, enum xsd_sockmsg_type.
    static final int READ = 2;
    static final int TRANSACTION_START = 6;
    static final int TRANSACTION_END = 7;
    static final int WRITE = 11;
    static final int RM = 13;
    static final int SET_PERMS = 14;
    static final int WATCH_EVENT = 15;
    static final int ERROR = 16;

    /** The same file, struct xsd_sockmsg. */
    static final int HEADER_BYTES = 16;

    /** The same file, XENSTORE_PAYLOAD_MAX. */
    static final int MAX_PAYLOAD_BYTES = 4096;

    /** Encodes the message. */
    ByteBuffer encode() {
        ByteBuffer bytes = ByteBuffer.allocate(HEADER_BYTES + payload.length).order(ByteOrder.nativeOrder());
        return bytes.putInt(type).putInt(request).putInt(transaction).putInt(payload.length).put(payload).flip();
    }

    /**
     * The length of the payload, from a header.
     *
     * @param header {@link #HEADER_BYTES} bytes from its position on.
     * @throws IOException if the length exceeds the limit.
     */
    static int payloadBytes(ByteBuffer header) throws IOException {
        int length = header.order(ByteOrder.nativeOrder()).getInt(header.position() + 12);
        if (length < 0 || length > MAX_PAYLOAD_BYTES) {
            throw new IOException("a message of XenStore has at most " + MAX_PAYLOAD_BYTES + " bytes: length="
                + Integer.toUnsignedString(length));
        }
        return length;
    }

    /** Decodes a message; reads the header to its end. */
    static XenStoreMessage decode(ByteBuffer header, byte[] payload) {
        header.order(ByteOrder.nativeOrder());
        XenStoreMessage message = new XenStoreMessage(header.getInt(), header.getInt(), header.getInt(), payload);
        header.getInt(); // the payload's length, which the array has
        return message;
    }

    /** The payload as text, without a final NUL. */
    String text() {
        int length = payload.length > 0 && payload[payload.length - 1] == 0 ? payload.length - 1 : payload.length;
        return new String(payload, 0, length, StandardCharsets.UTF_8);
    }
}
