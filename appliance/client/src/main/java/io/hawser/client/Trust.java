package io.hawser.client;

import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;

/** The certificates that a client trusts. */
final class Trust {
    private Trust() {
    }

    /**
     * The TLS context for a broker. Without TLS it is empty, which takes no time to make.
     *
     * @param caFile certificates (PEM); null for those that the JDK trusts.
     */
    static SSLContext of(URI url, Path caFile) {
        try {
            if (!"https".equals(url.getScheme())) {
                SSLContext none = SSLContext.getInstance("TLS");
                none.init(null, new TrustManager[0], null);
                return none;
            }
            if (caFile == null) {
                return SSLContext.getDefault();
            }
            KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
            store.load(null, null);
            int number = 0;
            try (InputStream in = Files.newInputStream(caFile)) {
                for (Certificate certificate : CertificateFactory.getInstance("X.509").generateCertificates(in)) {
                    store.setCertificateEntry("ca" + number++, certificate);
                }
            }
            if (number == 0) {
                throw new ClientException(Failure.INVALID, "the file has no certificate (PEM): " + caFile);
            }
            TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            factory.init(store);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, factory.getTrustManagers(), null);
            return context;
        } catch (IOException | GeneralSecurityException e) {
            throw new ClientException(Failure.INVALID, "the certificates cannot be read: " + caFile + ": "
                + Problems.of(e));
        }
    }
}
