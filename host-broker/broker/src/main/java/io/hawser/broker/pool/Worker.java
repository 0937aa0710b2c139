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
import io.hawser.shm.control.BrokerMessageType;
import io.hawser.shm.os.DescriptorSocket;
import io.hawser.shm.os.Descriptors;
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
import java.util.function.Consumer;
import org.jboss.logging.Logger;

/**
 * One worker process: its control socket, its log and its end. All methods run on one event loop, and so do the calls
 * of the listener.
 *
 * <p>A frame in either direction is {@code u32 little-endian length, JSON}.
 */
public final class Worker implements ImagePeer {
    private static final Logger LOG = Logger.getLogger(Worker.class);
    private static final ObjectMapper JSON = new ObjectMapper();
    /** Messages in a second; an honest worker sends two by itself. Stops a worker from keeping the broker busy. */
    private static final int MAX_MESSAGES_A_SECOND = 200;
    private static final long FREEING_MS_A_GIB = 300; // on an H200's host 66 GiB took 12 s
    private static final int LINGER_MS = 500;

    /** Receives the events of a worker, on the event loop. */
    public interface Listener {
        /** The worker has sent a well-formed message. */
        void onMessage(Worker worker, WorkerMessage message);

        /** The process and its whole group have ended. Last call. */
        void onExit(Worker worker, String reason);
    }

    private final long id;
    private final EventLoop loop;
    private final Confinement confinement;
    private Consumer<String> serve = vgpu -> {}; // tells the jail which vGPU this worker serves
    private Duration endTimeout;
    private final Listener listener;
    private final long startedNs = System.nanoTime();
    private ChildProcess child;
    private EpollDomainSocketChannel control;
    private EpollDomainSocketChannel log;
    private DescriptorSocket descriptors; // null before the session
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
     * @param confinement jails the worker.
     * @param cpuWeight as in {@link #setCpuWeight}, until the worker serves a session.
     * @param endTimeout time after which the broker kills a worker that got its end message or closed its socket.
     * @throws PosixException when the process cannot be started.
     */
    static Worker start(long id, EventLoop loop, List<String> command, List<String> environment,
        Confinement confinement, int cpuWeight, Duration endTimeout, Listener listener) throws PosixException {
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
            confinement.enter(id, worker.pid(), cpuWeight);
        } catch (IOException e) {
            worker.kill("the broker cannot put it into a control group: " + e.getMessage());
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

    /** Whether the worker can still take a session. */
    public boolean isUsable() {
        return !gone && cause == null && control.isActive();
    }

    /** Process id. */
    public int pid() {
        return child.pid();
    }

    /** Time since the start of the process. */
    public Duration age() {
        return Duration.ofNanos(System.nanoTime() - startedNs);
    }

    /**
     * Sends the worker the event descriptor that its guest's doorbell signals. The call precedes {@link #assign}. The
     * caller keeps its copy of the descriptor and closes it.
     *
     * @throws PosixException when the send fails; the worker is then unusable.
     */
    public void giveDoorbell(int descriptor) throws PosixException {
        sendWithDescriptor(message(BrokerMessageType.DOORBELL), descriptor);
    }

    /**
     * Sends the worker the page through which its vGPU takes turns, and the bell that wakes the worker. The call
     * precedes {@link #assign}. The caller keeps its copies of the descriptors and closes them.
     *
     * @throws PosixException when the send fails; the worker is then unusable.
     */
    public void giveTurns(int pageDescriptor, int bellDescriptor) throws PosixException {
        sendWithDescriptor(message(BrokerMessageType.TURNS), pageDescriptor);
        sendWithDescriptor(message(BrokerMessageType.TURN_BELL), bellDescriptor);
    }

    /**
     * Sends the worker its slot of a ledger, then its session and the guest's socket or region. The caller keeps its
     * copy of the descriptor and closes it.
     *
     * @throws PosixException when the send fails; the worker is then unusable.
     */
    public void assign(Assignment assignment, int descriptor) throws PosixException {
        serve.accept(assignment.vgpu());
        giveDescriptorSocket();
        LedgerSlot slot = assignment.slot();
        ObjectNode ledger = message(BrokerMessageType.LEDGER).put("slots", slot.slots())
            .put("slot", slot.number());
        slot.gpus().forEach(ledger.putArray("gpus")::add);
        slot.contextBytes().forEach(ledger.putArray("contextBytes")::add);
        sendWithDescriptor(ledger, slot.descriptor());
        ObjectNode message = message(BrokerMessageType.ASSIGN);
        assignment.describe(message);
        regionBytes = assignment.place() == null ? 0 : assignment.place().regionBytes();
        setMemoryQuota(assignment.memoryBytes(), slot.gpus().size());
        sendWithDescriptor(message, descriptor);
    }

    /** Netty drops descriptors that come on the control socket, so the worker passes them on a socket of their own. */
    private void giveDescriptorSocket() throws PosixException {
        DescriptorSocket.Pair pair;
        try {
            pair = DescriptorSocket.pair();
        } catch (IOException e) {
            throw new PosixException("socketpair", e.getMessage());
        }
        closeDescriptorSocket();
        descriptors = pair.receiver();
        try {
            sendWithDescriptor(message(BrokerMessageType.DESCRIPTORS), pair.sender());
        } finally {
            Descriptors.close(pair.sender());
        }
    }

    private void closeDescriptorSocket() {
        if (descriptors != null) {
            descriptors.close();
            descriptors = null;
        }
    }

    /**
     * Receives the descriptor that the worker has passed before its message. It can be of any kind of file: the broker
     * only keeps it, passes it on and closes it.
     *
     * @return the descriptor, which the caller closes; -1 when there is none, which ends the worker.
     */
    public int receiveDescriptor() {
        try {
            if (descriptors != null) {
                return descriptors.receive();
            }
        } catch (IOException e) {
            LOG.debugf("worker %d: %s", id, e.getMessage());
        }
        malformed("a worker must pass a descriptor before its message");
        return -1;
    }

    /**
     * Sets the memory that the worker's vGPU has on each of its GPUs.
     *
     * @param memoryBytes 0 for all memory of a GPU.
     */
    public void setMemoryQuota(long memoryBytes, int gpus) {
        confinement.limitToSession(id, backend,
            memoryBytes == 0 ? totalBytes : Math.min(totalBytes, memoryBytes * gpus), regionBytes);
    }

    /** Sets the worker's weight, 1 to 10,000, when workers compete for processor time. */
    public void setCpuWeight(int weight) {
        confinement.weigh(id, weight);
    }

    @Override
    public void giveImage(BrokerMessageType type, String sha256, long bytes, int descriptor) throws PosixException {
        sendWithDescriptor(message(type).put("sha256", sha256).put("bytes", bytes), descriptor);
    }

    @Override
    public void sendImageDropped(String sha256) {
        send(message(BrokerMessageType.NO_IMAGE).put("sha256", sha256));
    }

    /** Answers a share message: {@code kept} is whether other sessions can find the memory. */
    public void sendShared(String name, boolean kept) {
        send(message(BrokerMessageType.SHARED).put("name", name).put("kept", kept));
    }

    /** Answers an unshare message: the broker now counts the memory that other sessions have open. */
    public void sendUnshared(String name) {
        send(message(BrokerMessageType.UNSHARED).put("name", name));
    }

    /**
     * Answers a find message with the memory that another worker has shared.
     *
     * @param descriptor the memory's descriptor, still the caller's afterwards; -1 for none.
     */
    public void sendFound(WorkerMessage.Share shared, int descriptor) {
        ObjectNode found = message(BrokerMessageType.FOUND).put("name", shared.name()).put("handle", shared.handle())
            .put("bytes", shared.bytes()).put("column", shared.column());
        if (descriptor < 0) {
            send(found);
        } else if (isUsable()) {
            try {
                sendWithDescriptor(found, descriptor);
            } catch (PosixException e) { // has ended the worker, and with it the session's imports
                LOG.warnf("worker %d did not get a descriptor: %s", id, e.getMessage());
            }
        }
    }

    /** Answers a find message for a name under which no memory is shared. */
    public void sendNotFound(String name) {
        send(message(BrokerMessageType.NOT_FOUND).put("name", name));
    }

    /**
     * Makes the worker the keeper of its GPU, in place of a session.
     *
     * @param maxBytes limit of its memory for slabs.
     * @param aheadBytes memory to allocate before it is needed.
     */
    public void keep(long maxBytes, long aheadBytes) {
        confinement.limitToSession(id, backend, 0, maxBytes);
        endTimeout = endTimeout.plus(freeingTime(maxBytes));
        send(message(BrokerMessageType.KEEP).put("maxBytes", maxBytes).put("aheadBytes", aheadBytes));
    }

    /**
     * How long the end of a keeper may take, in addition to that of another worker: the kernel frees pinned memory.
     *
     * @param maxBytes limit of the keeper's memory.
     */
    public static Duration freeingTime(long maxBytes) {
        return Duration.ofMillis(FREEING_MS_A_GIB * (maxBytes >> 30));
    }

    /**
     * Connects this keeper with a session. The caller keeps its copy of the descriptor and closes it.
     *
     * @param maxBytes limit of the session's slabs.
     * @throws PosixException when the send fails; the keeper is then unusable.
     */
    public void keepFor(long maxBytes, int descriptor) throws PosixException {
        sendWithDescriptor(message(BrokerMessageType.KEEP_FOR).put("maxBytes", maxBytes), descriptor);
    }

    /**
     * Gives the worker's session a further connection of its guest. The call follows {@link #assign}. The caller keeps
     * its copy of the descriptor and closes it.
     *
     * @throws PosixException when the send fails.
     */
    public void giveStripe(int descriptor) throws PosixException {
        sendWithDescriptor(message(BrokerMessageType.STRIPE), descriptor);
    }

    /**
     * Connects the worker with the keeper of its GPU. The call precedes {@link #assign}. The caller keeps its copy of
     * the descriptor and closes it.
     *
     * @param isOut whether its session begins without room on the GPU.
     * @throws PosixException when the send fails; the worker is then unusable.
     */
    public void giveKeeper(boolean isOut, int descriptor) throws PosixException {
        sendWithDescriptor(message(BrokerMessageType.KEEPER).put("out", isOut), descriptor);
    }

    /**
     * Orders the session's memory to the keeper, or raises the limit of a move.
     *
     * @param bytes limit of the memory that moves.
     */
    public void swapOut(long bytes) {
        send(message(BrokerMessageType.SWAP_OUT).put("bytes", bytes));
    }

    /**
     * Orders the session's memory back to the GPU, or raises the limit of a move.
     *
     * @param bytes limit of the memory that moves.
     */
    public void swapIn(long bytes) {
        send(message(BrokerMessageType.SWAP_IN).put("bytes", bytes));
    }

    /** Orders the session, which is out, to make no call of the driver; or lets it make calls again. */
    public void swapFreeze(boolean isFrozen) {
        send(message(BrokerMessageType.SWAP_FREEZE).put("frozen", isFrozen));
    }

    /**
     * Orders this helper to move another worker's GPU state to the host.
     *
     * @param bytes length of that state, as far as it is known.
     */
    void checkpoint(int otherPid, long bytes) {
        send(message(BrokerMessageType.CHECKPOINT).put("pid", otherPid).put("bytes", bytes));
    }

    /** Orders this helper to move another worker back to the GPU. */
    void restore(int otherPid) {
        send(message(BrokerMessageType.RESTORE).put("pid", otherPid));
    }

    void send(ObjectNode message) {
        control.writeAndFlush(Unpooled.wrappedBuffer(frame(message)));
    }

    void sendWithDescriptor(ObjectNode message, int descriptor) throws PosixException {
        if (!isUsable()) {
            throw new IllegalStateException("a worker must be usable to receive a descriptor: worker=" + id);
        }
        try {
            Posix.sendWithDescriptor(control.fd().intValue(), frame(message), descriptor);
        } catch (PosixException e) {
            kill("a message with a descriptor could not be sent to it: " + e.getMessage());
            throw e;
        }
    }

    /** Sends the worker the message to end its session, and kills the worker when it does not end in time. */
    public void end(String reason) {
        if (gone || deadline != null) {
            return;
        }
        finish(message(BrokerMessageType.END).put("reason", reason), reason);
    }

    /** Sends the worker its last message, after which it must end in time. */
    void finish(ObjectNode message, String reason) {
        cause = reason;
        send(message);
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
                LOG.warnf("worker %d did not end in time, killing it: pid=%d timeoutMs=%d", id, pid(),
                    endTimeout.toMillis());
                child.kill(Posix.SIGKILL);
            }, endTimeout.toMillis(), TimeUnit.MILLISECONDS);
        }
    }

    static ObjectNode message(BrokerMessageType type) {
        return JSON.createObjectNode().put("type", type.wireName());
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
        // The sockets may still hold output of the ended process: read it before the report. A descendant outside the
        // group may hold the other ends open, and must not delay the report.
        loop.schedule(() -> {
            control.close();
            log.close();
        }, LINGER_MS, TimeUnit.MILLISECONDS);
        PromiseCombiner bothClosed = new PromiseCombiner(loop);
        bothClosed.add((Future<?>) control.closeFuture());
        bothClosed.add((Future<?>) log.closeFuture());
        bothClosed.finish(loop.<Void>newPromise().addListener(closed -> {
            gone = true;
            closeDescriptorSocket();
            String memory = confinement.leave(id);
            cause = cause == null && !memory.isEmpty() ? memory : cause;
            if (deadline != null) {
                deadline.cancel(false);
            }
            String lastWords = output.lastLine().isEmpty() ? "" : ", last words: " + output.lastLine();
            listener.onExit(this, (cause == null ? status.toString() : cause + " (" + status + ")") + lastWords);
        }));
    }

    private void malformed(String reason) {
        LOG.warnf("worker %d broke the control protocol, killing it: pid=%d: %s", id, pid(), reason);
        kill("it broke the control protocol: " + reason);
        control.close();
    }

    /**
     * The worker has entered its jail, and the broker now answers the system calls that the jail traps. The worker
     * sends this message once, before it serves a guest.
     */
    private void watch(WorkerMessage.Jailed jailed) {
        if (isWatched || isReady) {
            malformed("a worker must enter its jail once, before it is ready");
            return;
        }
        isWatched = true;
        try {
            serve = confinement.watch(id, pid(), jailed.listener(), reason -> loop.execute(() -> kill(reason)));
            send(message(BrokerMessageType.WATCHING));
        } catch (PosixException e) {
            kill("the broker cannot watch its jail: " + e.getMessage());
        }
    }

    private boolean isAboveMessageRate() {
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
            if (isAboveMessageRate()) {
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
            listener.onMessage(Worker.this, message);
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            killAfterTimeout();
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable failure) {
            if (failure instanceof IOException) {
                // ECONNRESET: the worker died with an unread message of the broker; the child's watcher reports the
                // exit.
                LOG.debugf("worker %d: control socket: %s", id, failure.getMessage());
                context.close();
            } else {
                malformed("a frame must be at most " + WorkerMessage.MAX_MESSAGE_BYTES + " bytes: "
                    + failure.getClass().getSimpleName());
            }
        }
    }
}
