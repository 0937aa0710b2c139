package io.hawser.worker;

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
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;

/** Opens and loads what a session needs of files, since a jailed worker opens none. */
final class Preload {
    private static final Logger LOG = System.getLogger(Preload.class.getName());

    private Preload() { }

    /** Before the jail; {@code ready} is what the worker will say. */
    static void run(ControlCodec codec, WorkerMessage.Ready ready) throws IOException {
        // A name that no jar has makes the class loader open all of them; what comes later is read from open files.
        ClassLoader.getSystemResource("io/hawser/worker/no-such-file");
        codec.encode(ready);
        codec.encode(new WorkerMessage.Jailed(0, ready.backend()));
        BrokerMessage watching = codec.decode("{\"type\":\"watching\"}".getBytes(StandardCharsets.US_ASCII));
        // Native code, of Netty and the JVM: a worker that somebody waits for has not been warmed up.
        Epoll.ensureAvailability();
        Socket.newSocketStream().close();
        LOG.log(Level.DEBUG, "loaded: {0}", new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        // The log's formats, its time zone and the kinds of random numbers and digests come from the runtime's files.
        LOG.log(Level.DEBUG, "loaded: {0}", watching);
        new SecureRandom().nextInt();
        try {
            MessageDigest.getInstance("SHA-256").digest();
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }
}
