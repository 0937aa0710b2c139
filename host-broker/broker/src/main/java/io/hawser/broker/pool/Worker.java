package io.hawser.broker.pool;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.hawser.broker.jail.Confinement;
import io.hawser.broker.model.Device;
import io.hawser.broker.posix.ChildProcess;
import io.hawser.broker.posix.ExitStatus;
import io.hawser.broker.posix.Posix;
import io.hawser.broker.posix.PosixException;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.EventLoop;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.epoll.EpollDomainSocketChannel;
import io.netty.handler.codec.LengthFieldBasedFrameDecoder;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.PromiseCombiner;
import io.netty.util.concurrent.ScheduledFuture;
import java.io.IOException;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jboss.logging.Logger;

/**
 * One worker process: its control socket, its log and its end. Everything is called, and calls back, on one event loop.
 *
 * <p>A frame in either direction is {@code u32 little-endian length, JSON}.
 */
public final class Worker implements ImagePeer {
    private static final Logger LOG = Logger.getLogger(Worker.class);
    private static final ObjectMapper JSON = new ObjectMapper();
    /** Messages in a second; an honest worker sends two of its own. Stops one from keeping the broker busy. */
    private static final int MAX_MESSAGES_A_SECOND = 200;
    private static final int LINGER_MS = 500;

    /** Told what happens to a worker, on the event loop. */
    public interface Listener {
        /** The worker said something well-formed. */
        void said(Worker worker, WorkerMessage message);

        /** The process is gone, and nothing of it is left. Last call. */
        void gone(Worker worker, String reason);
    }

    private final long id;
    private final EventLoop loop;
    private final Confinement confinement;
    private final Duration endTimeout;
    private final Listener listener;
    private final long startedNs = System.nanoTime();
    private ChildProcess child;
    private EpollDomainSocketChannel control;
    private EpollDomainSocketChannel log;
    private final WorkerLog output;
    private ScheduledFuture<?> deadline;
    private String cause;
    private boolean gone;
    private long windowNs = startedNs;
    private int messagesInWindow;
    private boolean isWatched;
    private boolean isReady;
    private String backend = "";
    private long totalBytes; // of its devices
    private long regionBytes; // of its guest's shared memory

    private Worker(long id, EventLoop loop, Confinement confinement, Duration endTimeout, Listener listener) {
        this.id = id;
        this.loop = loop;
        this.confinement = confinement;
        this.endTimeout = endTimeout;
        this.listener = listener;
        output = new WorkerLog(id);
    }

    /**
     * Starts a worker process.
     *
     * @param confinement how it is jailed.
     * @param endTimeout from being told to end, or from closing its socket, to being killed.
     * @throws PosixException when the process cannot be started.
     */
    static Worker start(long id, EventLoop loop, List<String> command, List<String> environment,
        Confinement confinement, Duration endTimeout, Listener listener) throws PosixException {
        Worker worker = new Worker(id, loop, confinement, endTimeout, listener);
        int[] controlPair = Posix.socketPair();
        int[] logPair;
        try {
            logPair = Posix.socketPair();
        } catch (PosixException e) {
            Posix.close(controlPair[0]);
            Posix.close(controlPair[1]);
            throw e;
        }
        try {
            worker.child = ChildProcess.start(confinement.spawner(), command, environment, logPair[1],
                controlPair[1], status -> loop.execute(() -> worker.exited(status)));
        } catch (PosixException e) {
            Posix.close(controlPair[0]);
            Posix.close(logPair[0]);
            throw e;
        } finally {
            Posix.close(controlPair[1]);
            Posix.close(logPair[1]);
        }
        worker.open(controlPair[0], logPair[0]);
        try {
            confinement.enter(id, worker.pid());
        } catch (IOException e) {
            worker.kill("it cannot be given a control group: " + e.getMessage());
        }
        return worker;
    }

    private void open(int controlDescriptor, int logDescriptor) {
        control = new EpollDomainSocketChannel(controlDescriptor);
        control.pipeline().addLast(new LengthFieldBasedFrameDecoder(ByteOrder.LITTLE_ENDIAN,
            WorkerMessage.MAX_MESSAGE_BYTES + Integer.BYTES, 0, Integer.BYTES, 0, Integer.BYTES, true));
        control.pipeline().addLast(new ControlHandler());
        log = new EpollDomainSocketChannel(logDescriptor);
        log.pipeline().addLast(output);
        loop.register(control);
        loop.register(log);
    }

    /** Counts up from 1; names the worker in logs. */
    @Override
    public long id() {
        return id;
    }

    /** Whether it can still be given a session. */
    public boolean usable() {
        return !gone && cause == null && control.isActive();
    }

    /** Process id. */
    public int pid() {
        return child.pid();
    }

    /** Time since the process was started. */
    public Duration age() {
        return Duration.ofNanos(System.nanoTime() - startedNs);
    }

    /**
     * Gives it the event descriptor that its guest's doorbell signals, before it is assigned. The caller still owns its
     * copy of the descriptor.
     *
     * @throws PosixException when the worker does not take it; it is of no further use then.
     */
    public void giveDoorbell(int descriptor) throws PosixException {
        pass(JSON.createObjectNode().put("type", "doorbell"), descriptor);
    }

    /**
     * Gives it the page by which its vGPU takes turns, and the bell to be rung for it, before it is assigned. The
     * caller still owns its copies of the descriptors.
     *
     * @throws PosixException when the worker does not take it; it is of no further use then.
     */
    public void giveTurns(int pageDescriptor, int bellDescriptor) throws PosixException {
        pass(JSON.createObjectNode().put("type", "turns"), pageDescriptor);
        pass(JSON.createObjectNode().put("type", "turnbell"), bellDescriptor);
    }

    /**
     * Gives it its slot of a ledger, then its session and the guest's socket or region. The caller still owns its copy
     * of the descriptor.
     *
     * @throws PosixException when the worker does not take it; it is of no further use then.
     */
    public void assign(Assignment assignment, int descriptor) throws PosixException {
        LedgerSlot seat = assignment.seat();
        ObjectNode ledger = JSON.createObjectNode().put("type", "ledger").put("slots", seat.slots())
            .put("slot", seat.slot());
        seat.gpus().forEach(ledger.putArray("gpus")::add);
        seat.contextBytes().forEach(ledger.putArray("contextBytes")::add);
        pass(ledger, seat.descriptor());
        ObjectNode message = JSON.createObjectNode().put("type", "assign");
        assignment.describe(message);
        regionBytes = assignment.place() == null ? 0 : assignment.place().regionBytes();
        quota(assignment.memoryBytes(), seat.gpus().size());
        pass(message, descriptor);
    }

    /**
     * Its vGPU has so much memory on each of its GPUs from now on.
     *
     * @param memoryBytes 0 for all that there is.
     */
    public void quota(long memoryBytes, int gpus) {
        confinement.limitToSession(id, backend,
            memoryBytes == 0 ? totalBytes : Math.min(totalBytes, memoryBytes * gpus), regionBytes);
    }

    /** Its session has this part of the processors' time among all workers that want it: 1 to 10,000. */
    public void weigh(int weight) {
        confinement.weigh(id, weight);
    }

    @Override
    public void giveImage(String type, String sha256, long bytes, int descriptor) throws PosixException {
        pass(JSON.createObjectNode().put("type", type).put("sha256", sha256).put("bytes", bytes), descriptor);
    }

    @Override
    public void tellNoImage(String sha256) {
        tell(JSON.createObjectNode().put("type", "noimage").put("sha256", sha256));
    }

    /** Tells it whether the memory that it shares can be found. */
    public void tellShared(String name, boolean kept) {
        tell(JSON.createObjectNode().put("type", "shared").put("name", name).put("kept", kept));
    }

    /** Tells it that the broker counts what it has unshared, where others have it. */
    public void tellUnshared(String name) {
        tell(JSON.createObjectNode().put("type", "unshared").put("name", name));
    }

    /** Tells it what another worker has said of memory. */
    public void tellFound(WorkerMessage.Share shared) {
        tell(JSON.createObjectNode().put("type", "found").put("name", shared.name()).put("handle", shared.handle())
            .put("bytes", shared.bytes()));
    }

    /** Tells it that no memory is shared by a name. */
    public void tellNotFound(String name) {
        tell(JSON.createObjectNode().put("type", "notfound").put("name", name));
    }

    private void tell(ObjectNode message) {
        control.writeAndFlush(Unpooled.wrappedBuffer(frame(message)));
    }

    private void pass(ObjectNode message, int descriptor) throws PosixException {
        if (!usable()) {
            throw new IllegalStateException("a worker must be usable to be assigned: worker=" + id);
        }
        try {
            Posix.sendWithDescriptor(control.fd().intValue(), frame(message), descriptor);
        } catch (PosixException e) {
            kill("it did not take its session: " + e.getMessage());
            throw e;
        }
    }

    /** Tells it to end its session; it is killed when it has not ended in time. */
    public void end(String reason) {
        if (gone || deadline != null) {
            return;
        }
        cause = reason;
        control.writeAndFlush(Unpooled.wrappedBuffer(frame(JSON.createObjectNode().put("type", "end")
            .put("reason", reason))));
        killAfterTimeout();
    }

    /** Ends the process at once. */
    public void kill(String reason) {
        if (gone) {
            return;
        }
        if (cause == null) {
            cause = reason;
        }
        child.kill(Posix.SIGKILL);
    }

    private void killAfterTimeout() {
        if (deadline == null && !gone) {
            deadline = loop.schedule(() -> {
                LOG.warnf("worker %d has not ended in time and is killed: pid=%d timeoutMs=%d", id, pid(),
                    endTimeout.toMillis());
                child.kill(Posix.SIGKILL);
            }, endTimeout.toMillis(), TimeUnit.MILLISECONDS);
        }
    }

    private static byte[] frame(ObjectNode message) {
        try {
            byte[] json = JSON.writeValueAsBytes(message);
            return Unpooled.buffer(Integer.BYTES + json.length).writeIntLE(json.length).writeBytes(json).array();
        } catch (JsonProcessingException e) {
            throw new IllegalStateException(e);
        }
    }

    private void exited(ExitStatus status) {
        // What the process wrote before it ended is still in the sockets: read it before telling of the end. A process
        // that left its group may hold the other ends open; it must not hold up the news.
        loop.schedule(() -> {
            control.close();
            log.close();
        }, LINGER_MS, TimeUnit.MILLISECONDS);
        PromiseCombiner bothClosed = new PromiseCombiner(loop);
        bothClosed.add((Future<?>) control.closeFuture());
        bothClosed.add((Future<?>) log.closeFuture());
        bothClosed.finish(loop.<Void>newPromise().addListener(closed -> {
            gone = true;
            String memory = confinement.leave(id);
            cause = cause == null && !memory.isEmpty() ? memory : cause;
            if (deadline != null) {
                deadline.cancel(false);
            }
            String said = output.lastLine().isEmpty() ? "" : ", last words: " + output.lastLine();
            listener.gone(this, (cause == null ? status.toString() : cause + " (" + status + ")") + said);
        }));
    }

    private void malformed(String reason) {
        LOG.warnf("worker %d broke the control protocol and is killed: pid=%d: %s", id, pid(), reason);
        kill("it broke the control protocol: " + reason);
        control.close();
    }

    /** It is in its jail: the broker answers what the jail refuses. Once, and before it may have met a guest. */
    private void watch(WorkerMessage.Jailed jailed) {
        if (isWatched || isReady) {
            malformed("a worker is jailed once, before it is ready");
            return;
        }
        isWatched = true;
        try {
            confinement.watch(id, pid(), jailed.listener(), reason -> loop.execute(() -> kill(reason)));
            tell(JSON.createObjectNode().put("type", "watching"));
        } catch (PosixException e) {
            kill("its jail cannot be watched: " + e.getMessage());
        }
    }

    private boolean tooMany() {
        long now = System.nanoTime();
        if (now - windowNs > TimeUnit.SECONDS.toNanos(1)) {
            windowNs = now;
            messagesInWindow = 0;
        }
        return ++messagesInWindow > MAX_MESSAGES_A_SECOND;
    }

    /** Reads frames. */
    private final class ControlHandler extends SimpleChannelInboundHandler<ByteBuf> {
        @Override
        protected void channelRead0(ChannelHandlerContext context, ByteBuf frame) {
            if (!context.channel().isActive()) {
                return;
            }
            if (tooMany()) {
                malformed("messages in a second must be at most " + MAX_MESSAGES_A_SECOND);
                return;
            }
            byte[] json = new byte[frame.readableBytes()];
            frame.readBytes(json);
            WorkerMessage message;
            try {
                message = WorkerMessage.parse(json);
            } catch (WorkerMessage.MalformedException e) {
                malformed(e.getMessage());
                return;
            }
            if (message instanceof WorkerMessage.Jailed jailed) {
                watch(jailed);
                return;
            }
            if (message instanceof WorkerMessage.Ready ready && !isReady) {
                isReady = true;
                backend = ready.backend();
                totalBytes = ready.devices().stream().mapToLong(Device::totalBytes).sum();
            }
            if (message instanceof WorkerMessage.Ended) {
                killAfterTimeout();
            }
            listener.said(Worker.this, message);
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            killAfterTimeout();
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable failure) {
            if (failure instanceof IOException) {
                // ECONNRESET: it died with a message of ours unread; its exit is told by the watcher.
                LOG.debugf("worker %d: control socket: %s", id, failure.getMessage());
                context.close();
            } else {
                malformed("a frame must be at most " + WorkerMessage.MAX_MESSAGE_BYTES + " bytes: "
                    + failure.getClass().getSimpleName());
            }
        }
    }
}
