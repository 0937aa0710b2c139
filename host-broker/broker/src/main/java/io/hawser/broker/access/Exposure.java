package io.hawser.broker.access;

import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.model.StartException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Warns of settings that expose data to the network without encryption. */
public final class Exposure {
    private Exposure() {
    }

    /**
     * The warnings for the operator, one sentence each.
     *
     * @throws StartException when only one of certificate and key is set, or one cannot be read.
     */
    public static List<String> check(BrokerConfig config) {
        BrokerConfig.Tls tls = config.tls();
        if (tls.certificate().isPresent() != tls.key().isPresent()) {
            throw new StartException("hawser.tls.certificate and hawser.tls.key must be set together");
        }
        for (Path path : tls.certificate().isPresent() ? List.of(tls.certificate().get(), tls.key().get())
            : List.<Path>of()) {
            if (!Files.isReadable(path)) {
                throw new StartException("a file of hawser.tls cannot be read: path=" + path);
            }
        }
        List<String> warnings = new ArrayList<>();
        if (tls.certificate().isEmpty() && !isLoopback(config.http().host())) {
            warnings.add("the REST interface is open to the network WITHOUT TLS; others on the network can read "
                + "passwords and tokens: hawser.http.host=" + config.http().host() + " (set hawser.tls.certificate and "
                + "hawser.tls.key, or use 127.0.0.1 behind a proxy)");
        }
        if (config.listen().plain() && !isLoopback(config.listen().host())) {
            warnings.add("guests connect over the network WITHOUT TLS; others on the network can read and change "
                + "their data, but not their tokens: hawser.listen.host=" + config.listen().host()
                + " (set hawser.listen.tls-port)");
        }
        if (config.http().loopbackRead()) {
            warnings.add("every user of this machine can read the broker's sessions: hawser.http.loopback-read=true");
        }
        return warnings;
    }

    /** Whether only this machine can reach an address. */
    public static boolean isLoopback(String host) {
        try {
            return InetAddress.getByName(host).isLoopbackAddress();
        } catch (UnknownHostException e) {
            // Listening on the address fails later and reports the error.
            return false;
        }
    }
}
