package io.hawser.worker;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.Description;
import io.hawser.worker.calls.Calls;
import io.hawser.worker.control.BrokerMessage;
import io.hawser.worker.control.ControlCodec;
import io.hawser.worker.control.ControlSocket;
import io.hawser.worker.control.WorkerMessage;
import io.hawser.worker.session.CreditWindow;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.LogText;
import io.hawser.worker.session.Session;
import io.hawser.worker.session.SessionOptions;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.FixedRecvByteBufAllocator;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.epoll.EpollSocketChannel;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;

/** One worker's life: ready, one session, the end. Every step of the end is bounded. */
public final class Worker {
    private static final Logger LOG = System.getLogger(Worker.class.getName());

    private static final long STATS_INTERVAL_MS = 500;
    private static final long TEARDOWN_LIMIT_MS = 1000;
    private static final long GOODBYE_LIMIT_MS = 1500;
    private static final int RECEIVE_BYTES = 64 * 1024;
    private static final int ADDRESS_BYTES = 26; // what Netty's accept wants for any address
    private static final int KEEPALIVE_IDLE_S = 10; // a guest machine that vanished is noticed in half a minute
    private static final int KEEPALIVE_INTERVAL_S = 5;
    private static final int KEEPALIVE_PROBES = 4;

    private final ControlSocket control;
    private final GpuBackend backend;
    private final ControlCodec codec = new ControlCodec();
    private final EventLoopGroup group = new MultiThreadIoEventLoopGroup(1, EpollIoHandler.newFactory());
    private final CountDownLatch over = new CountDownLatch(1);
    private final AtomicReference<WorkerMessage.Ended> end = new AtomicReference<>();
    private volatile Session session;
    private volatile EpollSocketChannel channel;

    /**
     * Prepares a worker.
     *
     * @param control to the broker; stays the caller's to close.
     * @param backend the GPU; closed by {@link #run}.
     */
    public Worker(ControlSocket control, GpuBackend backend) {
        this.control = control;
        this.backend = backend;
    }

    /**
     * Lives. Blocks until the session has ended, or the broker has closed the control socket.
     *
     * @return whether nothing went wrong but what a guest may cause.
     * @throws IOException if the broker cannot be told that the worker is ready.
     */
    public boolean run() throws IOException {
        WorkerMessage.Ready ready = DeviceList.ready(backend);
        control.write(codec.encode(ready));
        LOG.log(Level.INFO, "ready: backend={0} devices={1}", ready.backend(), ready.devices().size());
        Thread reader = new Thread(this::readControl, "control-reader");
        reader.setDaemon(true);
        reader.start();
        boolean interrupted = false;
        try {
            over.await();
        } catch (InterruptedException e) {
            interrupted = true;
        }
        boolean clean = tearDown();
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        return clean;
    }

    private void readControl() {
        try {
            for (ControlSocket.Frame frame = control.read(); frame != null; frame = control.read()) {
                BrokerMessage message = codec.decode(frame.json());
                if (message instanceof BrokerMessage.Assign assign) {
                    adopt(assign, frame.descriptor());
                } else if (message instanceof BrokerMessage.End ending) {
                    endSession(ending.reason(), false);
                }
            }
            endSession("the broker has closed the control socket", false);
        } catch (IOException | RuntimeException e) {
            LOG.log(Level.ERROR, "control socket: " + e.getMessage(), e);
            endSession("control socket: " + e.getMessage(), true);
        }
    }

    private void adopt(BrokerMessage.Assign assign, int descriptor) throws IOException {
        if (session != null || descriptor < 0) {
            throw new IOException("a worker takes one session, with its socket: sessionId=" + assign.sessionId()
                + " descriptor=" + descriptor + " busy=" + (session != null));
        }
        channel = open(descriptor);
        SessionOptions options = new SessionOptions(assign.sessionId(), assign.vgpu(), assign.memoryBytes(),
            assign.peer(), assign.program(), CreditWindow.DEFAULT_BYTES);
        session = new Session(options, backend, channel, Calls.perThreadStreams(backend), this::sessionEnded);
        channel.eventLoop().execute(() -> session.start(new Calls(session), Description.HASH));
        channel.eventLoop().scheduleAtFixedRate(this::sendStats, STATS_INTERVAL_MS, STATS_INTERVAL_MS,
            TimeUnit.MILLISECONDS);
    }

    /** Takes over a connected socket; nothing is read from it yet. */
    private EpollSocketChannel open(int descriptor) {
        EpollSocketChannel opened = new EpollSocketChannel(descriptor);
        opened.config().setAutoRead(false).setTcpNoDelay(true).setKeepAlive(true)
            .setTcpKeepIdle(KEEPALIVE_IDLE_S).setTcpKeepIntvl(KEEPALIVE_INTERVAL_S).setTcpKeepCnt(KEEPALIVE_PROBES)
            .setRecvByteBufAllocator(new FixedRecvByteBufAllocator(RECEIVE_BYTES))
            .setWriteBufferWaterMark(new WriteBufferWaterMark(1 << 20, 4 << 20));
        group.register(opened).syncUninterruptibly();
        return opened;
    }

    /**
     * Serves a session of the worker's own over loopback, so that the first real one starts at full speed. Before
     * {@link #run}. When it cannot be had, for want of a loopback interface, the worker is only slower at first.
     */
    public void warmUp() {
        io.netty.channel.unix.Socket listener = io.netty.channel.unix.Socket.newSocketStream();
        try (Socket client = new Socket()) {
            listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            listener.listen(1);
            client.connect(listener.localAddress());
            EpollSocketChannel served = open(listener.accept(new byte[ADDRESS_BYTES]));
            Session own = new Session(new SessionOptions(Session.WARM_UP, "", 0, "", "", CreditWindow.DEFAULT_BYTES),
                backend, served, Calls.perThreadStreams(backend), (reason, error) -> { });
            served.eventLoop().execute(() -> own.start(new Calls(own), Description.HASH));
            WarmUp.play(client);
            client.shutdownOutput();
            served.closeFuture().await(GOODBYE_LIMIT_MS);
            served.eventLoop().submit(own::close).get(TEARDOWN_LIMIT_MS, TimeUnit.MILLISECONDS);
            served.eventLoop().submit(own::freeStaging).get(TEARDOWN_LIMIT_MS, TimeUnit.MILLISECONDS);
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

    private void endSession(String reason, boolean error) {
        if (end.get() != null) {
            return;
        }
        if (session == null) {
            sessionEnded(reason, error);
        } else {
            channel.eventLoop().execute(() -> session.end(reason, error, CudaResult.DEVICE_UNAVAILABLE));
        }
    }

    private void sessionEnded(String reason, boolean error) {
        if (end.compareAndSet(null, new WorkerMessage.Ended(LogText.clean(reason), error))) {
            over.countDown();
        }
    }

    /** Session thread. A broker that does not read stops this loop only when its socket's buffer is full of stats. */
    private void sendStats() {
        tell(session.stats());
    }

    private void tell(WorkerMessage message) {
        try {
            control.write(codec.encode(message));
        } catch (IOException e) {
            LOG.log(Level.DEBUG, "the broker has gone: {0}", e.getMessage());
            endSession("the broker has gone", false);
        }
    }

    private boolean tearDown() {
        boolean clean = !end.get().error();
        Session ended = session;
        if (ended != null) {
            clean &= freeSession(ended);
        }
        tell(end.get());
        if (ended != null) {
            channel.closeFuture().awaitUninterruptibly(GOODBYE_LIMIT_MS);
            channel.eventLoop().execute(ended::freeStaging);
        }
        group.shutdownGracefully(0, TEARDOWN_LIMIT_MS, TimeUnit.MILLISECONDS)
            .awaitUninterruptibly(TEARDOWN_LIMIT_MS);
        Thread closer = new Thread(backend::close, "backend-closer");
        closer.setDaemon(true);
        closer.start();
        try {
            closer.join(TEARDOWN_LIMIT_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the process ends next
        }
        if (closer.isAlive()) {
            LOG.log(Level.WARNING, "the GPU could not be closed within {0} ms: the process ends with it",
                TEARDOWN_LIMIT_MS);
            clean = false;
        }
        return clean;
    }

    private boolean freeSession(Session ended) {
        try {
            channel.eventLoop().submit(() -> {
                WorkerMessage.Stats last = ended.stats();
                Session.Leftovers left = ended.close();
                LOG.log(Level.DEBUG, "left after the session: {0}", left);
                tell(last);
            }).get(TEARDOWN_LIMIT_MS, TimeUnit.MILLISECONDS);
            return true;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the process ends next
        } catch (TimeoutException e) {
            LOG.log(Level.WARNING, "the session could not be freed within {0} ms: the process ends with it",
                TEARDOWN_LIMIT_MS);
        } catch (ExecutionException e) {
            LOG.log(Level.ERROR, "the session could not be freed", e.getCause());
        }
        return false;
    }
}
