package io.hawser.worker;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.Description;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.client.MemoryRequests;
import io.hawser.cuda.generated.client.StreamRequests;
import io.hawser.cuda.generated.client.WireRequests;
import io.hawser.shm.RecordLayout;
import io.hawser.shm.RecordReader;
import io.hawser.shm.RecordWriter;
import io.hawser.worker.calls.Calls;
import io.hawser.worker.channel.Link;
import io.hawser.worker.channel.tcp.TcpLink;
import io.hawser.worker.session.CreditWindow;
import io.hawser.worker.session.Session;
import io.hawser.worker.session.SessionOptions;
import io.netty.channel.epoll.Epoll;
import java.io.DataInputStream;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * A guest of the worker's own, before it is ready: it makes the calls that every program makes, so that the first real
 * guest does not wait for classes to be loaded. More rounds would compile code too, and cost each start of a worker.
 */
final class WarmUp {
    private static final Logger LOG = System.getLogger(WarmUp.class.getName());

    private static final int ROUNDS = 20;
    private static final int TIMEOUT_MS = 5000;
    private static final long END_LIMIT_MS = 1000;
    private static final int ADDRESS_BYTES = 26; // what Netty's accept wants for any address
    private static final int SMALL_BYTES = 64;
    private static final int LARGE_BYTES = 64 * 1024;
    private static final long CONTEXT = (long) HandleKind.CONTEXT.number() << 40 | 1;

    private final Socket socket;
    private final DataInputStream in;
    private final RecordWriter writer = new RecordWriter(2 * LARGE_BYTES);
    private final RecordReader reader = new RecordReader();
    private long sequence = 3; // a handshake would have been 1 and 2
    private int context;

    private WarmUp(Socket socket) throws IOException {
        this.socket = socket;
        this.in = new DataInputStream(socket.getInputStream());
    }

    /**
     * Holds a session with itself over loopback. When it cannot be had, for want of a loopback interface, the worker is
     * only slower at first.
     *
     * @param backend the GPU.
     */
    static void run(GpuBackend backend) {
        Epoll.ensureAvailability(); // loads Netty's native code
        io.netty.channel.unix.Socket listener = io.netty.channel.unix.Socket.newSocketStream();
        try (Socket client = new Socket()) {
            listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            listener.listen(1);
            client.connect(listener.localAddress());
            Link link = new TcpLink(listener.accept(new byte[ADDRESS_BYTES]));
            Session own = new Session(new SessionOptions(Session.WARM_UP, "", 0, "", "", CreditWindow.DEFAULT_BYTES),
                backend, link, Calls.perThreadStreams(backend), (reason, error) -> { });
            link.execute(() -> own.start(new Calls(own, null), Description.HASH));
            client.setSoTimeout(TIMEOUT_MS);
            client.setTcpNoDelay(true);
            new WarmUp(client).play();
            client.shutdownOutput();
            link.awaitClosed(END_LIMIT_MS);
            CompletableFuture.runAsync(() -> {
                own.close();
                own.freeStaging();
            }, link).get(END_LIMIT_MS, TimeUnit.MILLISECONDS);
            link.shutdown(END_LIMIT_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // run() ends at once
        } catch (IOException | ExecutionException | TimeoutException e) {
            LOG.log(Level.WARNING, "the worker is not warmed up: " + e.getMessage(), e);
        } finally {
            closeListener(listener);
        }
    }

    private static void closeListener(io.netty.channel.unix.Socket listener) {
        try {
            listener.close();
        } catch (IOException e) {
            LOG.log(Level.WARNING, "the warm-up''s socket stays open: {0}", e.getMessage());
        }
    }

    private void play() throws IOException {
        receive(); // WELCOME
        call(WireRequests.hwsDeviceInfo(writer, sequence, 1, 0, 0));
        call(WireRequests.hwsContextCreate(writer, sequence, 1, 0, CONTEXT, 0, 0, 1));
        context = (int) CONTEXT;
        MemorySegment small = MemorySegment.ofArray(new byte[SMALL_BYTES]);
        MemorySegment large = MemorySegment.ofArray(new byte[LARGE_BYTES]);
        for (int i = 0; i < ROUNDS; i++) {
            call(MemoryRequests.cuMemAlloc_v2(writer, sequence, 1, context, LARGE_BYTES));
            long memory = reader.i64(0);
            send(WireRequests.hwsCopyHtoD(writer, sequence, 1, context, memory, 0, SMALL_BYTES, small));
            send(WireRequests.hwsCopyHtoD(writer, sequence, 1, context, memory, 0, LARGE_BYTES, large));
            call(StreamRequests.cuStreamSynchronize(writer, sequence, 1, context, 0));
            call(WireRequests.hwsCopyDtoH(writer, sequence, 1, context, memory, SMALL_BYTES, 0));
            call(WireRequests.hwsCopyDtoH(writer, sequence, 1, context, memory, LARGE_BYTES, 0));
            send(MemoryRequests.cuMemFree_v2(writer, sequence, 1, context, memory));
        }
    }

    private void send(int lengthBytes) throws IOException {
        socket.getOutputStream().write(writer.array(), 0, lengthBytes);
        sequence++;
    }

    /** Sends a request and reads to its reply. */
    private void call(int lengthBytes) throws IOException {
        long request = sequence;
        send(lengthBytes);
        do {
            receive();
        } while (reader.opcode() >= 0);
        if (reader.sequence() != request || reader.flags() != 0) {
            throw new IOException("a call of the warm-up failed: CUresult=" + reader.flags());
        }
    }

    private void receive() throws IOException {
        int lengthBytes = Integer.reverseBytes(in.readInt());
        if (lengthBytes < RecordLayout.HEADER_BYTES || lengthBytes > RecordLayout.MAX_RECORD_BYTES) {
            throw new IOException("a reply of the warm-up has no length: lengthBytes=" + lengthBytes);
        }
        byte[] record = new byte[lengthBytes];
        in.readFully(record, Integer.BYTES, lengthBytes - Integer.BYTES);
        ByteBuffer.wrap(record).order(ByteOrder.LITTLE_ENDIAN).putInt(0, lengthBytes);
        reader.wrap(MemorySegment.ofArray(record), 0, lengthBytes);
    }
}
