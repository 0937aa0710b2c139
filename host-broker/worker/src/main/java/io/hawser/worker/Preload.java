package io.hawser.worker;

import io.hawser.shm.control.BrokerMessageType;
import io.hawser.shm.os.StreamSocket;
import io.hawser.worker.control.BrokerMessage;
import io.hawser.worker.control.ControlCodec;
import io.hawser.worker.control.WorkerMessage;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.unix.Socket;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;

/** Opens every file and loads every class that a session needs, because a jailed worker cannot open files. */
final class Preload {
    private static final Logger LOG = System.getLogger(Preload.class.getName());

    private Preload() {}

    /** Must run before the worker enters its jail. {@code ready} is the message that the worker will send. */
    static void run(ControlCodec codec, WorkerMessage.Ready ready) throws IOException {
        // The class loader searches every jar for a name that no jar has, and so opens them all. Later loads read open
        // files.
        ClassLoader.getSystemResource("io/hawser/worker/no-such-file");
        codec.encode(ready);
        codec.encode(new WorkerMessage.Jailed(0, ready.backend()));
        BrokerMessage watching = codec.decode(codec.encode(BrokerMessageType.WATCHING));
        // Loads the native code of Netty and the JVM: a worker that skipped its warm-up has not loaded it yet.
        Epoll.ensureAvailability();
        Socket.newSocketStream().close();
        StreamSocket.load();
        LOG.log(Level.DEBUG, "loaded: {0}", new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        // Logging, random numbers and digests read the runtime's files: formats, the time zone, the list of algorithms.
        LOG.log(Level.DEBUG, "loaded: {0}", watching);
        new SecureRandom().nextInt();
        try {
            MessageDigest.getInstance("SHA-256").digest();
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }
}
