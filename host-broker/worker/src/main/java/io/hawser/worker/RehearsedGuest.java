package io.hawser.worker;

import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.client.ContextRequests;
import io.hawser.cuda.generated.client.DeviceRequests;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.RecordReader;
import io.hawser.shm.wire.RecordWriter;
import java.io.DataInputStream;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * The simulated guest of a {@link Rehearsal}. A caller writes a record with {@link #writer}, {@link #sequence} and
 * {@link #context}, and then passes its length to {@link #send} or {@link #call}. One thread.
 */
final class RehearsedGuest {
    /** The thread number of its requests. */
    static final int THREAD = 1;
    /** The most bytes of content that a record can carry. */
    static final int MOST_BYTES = 64 * 1024;

    private static final long CONTEXT = idOf(HandleKind.CONTEXT, 1);

    private final Peer peer;
    private final RecordWriter writer = new RecordWriter(2 * MOST_BYTES);
    private final RecordReader reader = new RecordReader();
    private long sequence = 3; // HELLO and PROOF of a handshake would have been 1 and 2
    private int context;

    /** The guest's end of a carrier. */
    interface Peer {
        /** Sends the record that {@code record} holds after its {@code end()}. */
        void send(RecordWriter record, int lengthBytes) throws IOException;

        /** Waits for {@code bytes} bytes. */
        void receive(byte[] target, int offset, int bytes) throws IOException;

        /** Ends the session like a guest that leaves. */
        void leave() throws IOException;
    }

    /** The guest's end of a socket. */
    record SocketPeer(Socket socket, DataInputStream in) implements Peer {
        @Override
        public void send(RecordWriter record, int lengthBytes) throws IOException {
            socket.getOutputStream().write(record.array(), 0, lengthBytes);
        }

        @Override
        public void receive(byte[] target, int offset, int bytes) throws IOException {
            in.readFully(target, offset, bytes);
        }

        @Override
        public void leave() throws IOException {
            socket.shutdownOutput();
        }
    }

    RehearsedGuest(Peer peer) {
        this.peer = peer;
    }

    /** The id that a guest gives to its object of this number. */
    static long idOf(HandleKind kind, int number) {
        return (long) kind.number() << 40 | number;
    }

    /** Encodes the next record, of at most 2 * {@link #MOST_BYTES} bytes. */
    RecordWriter writer() {
        return writer;
    }

    /** The sequence number of the next record. */
    long sequence() {
        return sequence;
    }

    /** The context of its requests; 0 before {@link #createContext}. */
    int context() {
        return context;
    }

    /** The last record of the session, until the next one. */
    RecordReader reply() {
        return reader;
    }

    /** Creates the context of the first device. */
    void createContext() throws IOException {
        call(DeviceRequests.hwsDeviceInfo(writer, sequence, THREAD, 0, 0));
        call(ContextRequests.hwsContextCreate(writer, sequence, THREAD, 0, CONTEXT, 0, 0, 1));
        context = (int) CONTEXT;
    }

    /**
     * Sends the record that {@link #writer} holds, and does not wait for a reply.
     *
     * @param lengthBytes the record's length.
     * @throws IOException if the record cannot be sent.
     */
    void send(int lengthBytes) throws IOException {
        peer.send(writer, lengthBytes);
        sequence++;
    }

    /**
     * Sends the request that {@link #writer} holds, and waits for its {@link #reply}.
     *
     * @param lengthBytes the record's length.
     * @throws IOException if the session ends or does not answer in time, or if the reply has an error; the message
     *     then has the {@code CUresult}.
     */
    void call(int lengthBytes) throws IOException {
        long request = sequence;
        send(lengthBytes);
        do {
            receive();
        } while (reader.opcode() >= 0);
        if (reader.sequence() != request || reader.flags() != 0) {
            throw new IOException("a call of a rehearsal failed: CUresult=" + reader.flags());
        }
    }

    /**
     * Waits for the next record of the session, which becomes the {@link #reply}.
     *
     * @throws IOException if the session ends, does not answer in time, or sends a record of an invalid length.
     */
    void receive() throws IOException {
        byte[] head = new byte[Integer.BYTES];
        peer.receive(head, 0, head.length);
        int lengthBytes = ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN).getInt();
        if (lengthBytes < RecordLayout.HEADER_BYTES || lengthBytes > RecordLayout.MAX_RECORD_BYTES) {
            throw new IOException("a reply of a rehearsal has an invalid length: lengthBytes=" + lengthBytes);
        }
        byte[] record = Arrays.copyOf(head, lengthBytes);
        peer.receive(record, Integer.BYTES, lengthBytes - Integer.BYTES);
        reader.wrap(MemorySegment.ofArray(record), 0, lengthBytes);
    }
}
