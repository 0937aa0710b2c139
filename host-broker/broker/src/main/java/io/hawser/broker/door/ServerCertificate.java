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
 * Certificate and key of the guests' TLS door. A separate thread reads the files again when they change. When the new
 * files are invalid, it logs the error and the previous certificate stays in use. Thread-safe.
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
     * @throws IOException when they are invalid; the message names them.
     */
    ServerCertificate(BrokerConfig.Tls tls) throws IOException {
        certificate = tls.certificate().orElseThrow();
        key = tls.key().orElseThrow();
        version = version();
        context = read();
        long periodMs = Math.max(tls.reloadPeriod().toMillis(), 1);
        reader.scheduleWithFixedDelay(this::reloadIfChanged, periodMs, periodMs, TimeUnit.MILLISECONDS);
    }

    /** The TLS context for new connections. */
    SslContext context() {
        return context;
    }

    private void reloadIfChanged() {
        try {
            Object seen = version();
            if (seen.equals(version)) {
                return;
            }
            // Set before reading: the next check then sees a change during the read.
            version = seen;
            context = read();
            LOG.infof("the certificate was read again: path=%s", certificate);
        } catch (IOException e) {
            LOG.errorf("the previous certificate stays in use: %s", e.getMessage());
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
            // Without the cause, whose message may quote the key.
            throw new IOException("certificate or key cannot be used: hawser.tls.certificate=" + certificate
                + " hawser.tls.key=" + key + " (PEM; the key in PKCS #8, not encrypted): " + e.getClass().getName());
        }
    }

    @Override
    public void close() {
        reader.shutdownNow();
    }
}
