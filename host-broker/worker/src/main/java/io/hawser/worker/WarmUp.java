package io.hawser.worker;

import static io.hawser.worker.RehearsedGuest.MOST_BYTES;
import static io.hawser.worker.RehearsedGuest.THREAD;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.client.CopyRequests;
import io.hawser.cuda.generated.client.DeviceRequests;
import io.hawser.cuda.generated.client.MemoryRequests;
import io.hawser.cuda.generated.client.StreamRequests;
import io.hawser.shm.os.SocketMessages;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.channel.tcp.TcpLink;
import io.hawser.worker.control.ControlCodec;
import io.hawser.worker.control.WorkerMessage;
import io.netty.channel.epoll.Epoll;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;

/**
 * Runs short sessions with a simulated guest over both carriers before the worker is ready. The guest makes the calls
 * that every program makes, so that the first real guest does not wait for class loading. More rounds would also
 * compile the code, but would delay each start of a worker.
 */
final class WarmUp {
    private static final Logger LOG = System.getLogger(WarmUp.class.getName());

    private static final int ROUNDS = 20;
    private static final int BURSTS = 8; // each burst costs a thread switch, which takes long on a loaded machine
    private static final int BURST_CALLS = 400;
    private static final int SMALL_BYTES = 64;
    private static final long END_LIMIT_MS = 1000;

    private WarmUp() {}

    /**
     * Runs one session over loopback with the calls of a typical program, then one over a region. A failure only makes
     * the first real session slower; an example is a machine without a loopback interface.
     *
     * @param backend the GPU.
     */
    static void run(GpuBackend backend) {
        try {
            Rehearsal.overLoopback(backend, WarmUp::playProgram);
            Rehearsal.overRegion(backend, WarmUp::playBursts);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the interrupt makes the later run() return at once
        } catch (IOException | ExecutionException | TimeoutException e) {
            LOG.log(Level.WARNING, "the worker is not warmed up", e); // a timeout has no message
        }
    }

    /**
     * Loads classes on a background thread while the caller opens the GPU: for a worker that has no time to warm up.
     *
     * @return the thread. It opens files, so it must end before the worker enters its jail.
     */
    static Thread loadInBackground() {
        return Thread.ofPlatform().daemon().name("load").start(() -> {
            try {
                SocketMessages.load();
                ControlCodec codec = new ControlCodec();
                codec.decode(codec.encode(Rehearsal.assign(null)));
                codec.encode(new WorkerMessage.Ended("", false));
                Epoll.ensureAvailability();
                new TcpLink(io.netty.channel.unix.Socket.newSocketStream().intValue()).shutdown(END_LIMIT_MS);
            } catch (IOException | RuntimeException e) {
                LOG.log(Level.WARNING, "classes could not be loaded ahead: " + e.getMessage(), e);
            }
        });
    }

    /** Makes the calls of a typical program: a context, memory, copies. */
    private static void playProgram(RehearsedGuest guest) throws IOException {
        guest.createContext();
        RecordWriter writer = guest.writer();
        int context = guest.context();
        MemorySegment small = MemorySegment.ofArray(new byte[SMALL_BYTES]);
        MemorySegment large = MemorySegment.ofArray(new byte[MOST_BYTES]);
        for (int i = 0; i < ROUNDS; i++) {
            guest.call(MemoryRequests.cuMemAlloc_v2(writer, guest.sequence(), THREAD, context, MOST_BYTES));
            long memory = guest.reply().i64(0);
            guest.send(CopyRequests.hwsCopyHtoD(writer, guest.sequence(), THREAD, context, memory, 0, SMALL_BYTES,
                small));
            guest.send(CopyRequests.hwsCopyHtoD(writer, guest.sequence(), THREAD, context, memory, 0, MOST_BYTES,
                large));
            guest.call(StreamRequests.cuStreamSynchronize(writer, guest.sequence(), THREAD, context, 0));
            guest.call(CopyRequests.hwsCopyDtoH(writer, guest.sequence(), THREAD, context, memory, SMALL_BYTES, 0));
            guest.call(CopyRequests.hwsCopyDtoH(writer, guest.sequence(), THREAD, context, memory, MOST_BYTES, 0));
            guest.send(MemoryRequests.cuMemFree_v2(writer, guest.sequence(), THREAD, context, memory));
        }
    }

    /**
     * Makes bursts of calls without a context. They fail, but take the same path as calls that succeed. The other
     * session has created a context, and creating a second one can be expensive.
     */
    private static void playBursts(RehearsedGuest guest) throws IOException {
        RecordWriter writer = guest.writer();
        for (int i = 0; i < BURSTS; i++) {
            for (int j = 1; j < BURST_CALLS; j++) {
                int lengthBytes = StreamRequests.cuStreamSynchronize(writer, guest.sequence(), THREAD, 0, 0);
                // Clears the reply flag, which the encoder sets as the description demands.
                writer.memory().set(ValueLayout.JAVA_INT_UNALIGNED, RecordLayout.FLAGS_OFFSET, 0);
                guest.send(lengthBytes);
            }
            guest.call(DeviceRequests.hwsDeviceInfo(writer, guest.sequence(), THREAD, 0, 0));
        }
    }
}
