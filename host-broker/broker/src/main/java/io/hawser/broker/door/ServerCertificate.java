package io.hawser.broker.door;

import io.hawser.broker.config.BrokerConfig;
import io.netty.handler.ssl.OpenSsl;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLException;
import org.jboss.logging.Logger;

/**
 * Certificate and key of the guests' TLS door, read again when their files have changed; what cannot be used is logged,
 * and the one before stays. Thread-safe; reads on a thread of its own.
 */
final class ServerCertificate implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(ServerCertificate.class);

    private final Path certificate;
    private final Path key;
    private final ScheduledExecutorService reader = Executors.newSingleThreadScheduledExecutor(
        task -> Thread.ofPlatform().name("hawser-certificate").daemon().unstarted(task));
    private volatile SslContext context;
    private Object version;

    /**
     * Reads the files.
     *
     * @throws IOException when they cannot be used; the message names them.
     */
    ServerCertificate(BrokerConfig.Tls tls) throws IOException {
        certificate = tls.certificate().orElseThrow();
        key = tls.key().orElseThrow();
        version = version();
        context = read();
        long periodMs = Math.max(tls.reloadPeriod().toMillis(), 1);
        reader.scheduleWithFixedDelay(this::look, periodMs, periodMs, TimeUnit.MILLISECONDS);
    }

    /** What new connections are made with. */
    SslContext context() {
        return context;
    }

    private void look() {
        try {
            Object seen = version();
            if (seen.equals(version)) {
                return;
            }
            // Taken first: a change while it is read is seen by the next look.
            version = seen;
            context = read();
            LOG.infof("certificate read: path=%s", certificate);
        } catch (IOException e) {
            LOG.errorf("the certificate before stays in use: %s", e.getMessage());
        }
    }

    private Object version() throws IOException {
        return List.of(Files.readAttributes(certificate, "unix:ino,size,lastModifiedTime,ctime"),
            Files.readAttributes(key, "unix:ino,size,lastModifiedTime,ctime"));
    }

    private SslContext read() throws IOException {
        try {
            return SslContextBuilder.forServer(certificate.toFile(), key.toFile())
                .sslProvider(OpenSsl.isAvailable() ? SslProvider.OPENSSL : SslProvider.JDK)
                .protocols("TLSv1.3", "TLSv1.2").build();
        } catch (SSLException | IllegalArgumentException e) {
            // Its cause may quote the key.
            throw new IOException("certificate or key cannot be used: hawser.tls.certificate=" + certificate
                + " hawser.tls.key=" + key + " (PEM; the key in PKCS #8, not encrypted): " + e.getClass().getName());
        }
    }

    @Override
    public void close() {
        reader.shutdownNow();
    }
}
