package io.hawser.broker;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** A certificate authority of a test's own and its certificates, made by the openssl command. */
public final class TestCertificates {
    private final Path folder;

    /** Makes the authority; skips the test where there is no openssl command. */
    public TestCertificates(Path folder) throws Exception {
        this.folder = Files.createDirectories(folder);
        assumeTrue(run("openssl version >/dev/null 2>&1"), "skipped: there is no openssl command");
        must("openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out ca.key && "
            + "openssl req -x509 -new -key ca.key -subj '/CN=Hawser test authority' -days 30 -out ca.pem");
    }

    /** Path of the authority's certificate. */
    public Path authority() {
        return folder.resolve("ca.pem");
    }

    /**
     * Makes a certificate and its key: {@code NAME.pem} and {@code NAME.key}.
     *
     * @param names in openssl's form: {@code DNS:localhost,IP:127.0.0.1}.
     * @param days days of validity; -1 for an expired certificate.
     */
    public Path certificate(String name, String names, int days) throws Exception {
        must("openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out " + name + ".key && "
            + "echo 'subjectAltName=" + names + "' > " + name + ".ext && openssl req -new -key " + name
            + ".key -subj /CN=" + name
            + " | openssl x509 -req -CA ca.pem -CAkey ca.key -CAcreateserial -days " + days + " -extfile " + name
            + ".ext -out " + name + ".pem");
        return folder.resolve(name + ".pem");
    }

    /** Path of a certificate's key. */
    public Path key(String name) {
        return folder.resolve(name + ".key");
    }

    /** A context that trusts only this authority. */
    public SSLContext trusting() throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        try (InputStream certificate = Files.newInputStream(authority())) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(certificate));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    private void must(String command) throws Exception {
        if (!run("( " + command + " ) > openssl.log 2>&1")) {
            throw new AssertionError(Files.readString(folder.resolve("openssl.log")));
        }
    }

    private boolean run(String command) throws Exception {
        return new ProcessBuilder("sh", "-c", command).directory(folder.toFile()).start().waitFor() == 0;
    }
}
