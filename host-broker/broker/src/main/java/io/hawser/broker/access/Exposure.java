package io.hawser.broker.access;

import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.model.StartException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** What settings show to the network in clear. */
public final class Exposure {
    private Exposure() {
    }

    /**
     * What an operator should know of the settings, a sentence each.
     *
     * @throws StartException when certificate and key are not both there.
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
            warnings.add("the REST interface is open to the network WITHOUT TLS: passwords and tokens can be read on "
                + "the way: hawser.http.host=" + config.http().host() + " (set hawser.tls.certificate and "
                + "hawser.tls.key, or leave it on 127.0.0.1 behind a proxy)");
        }
        if (config.listen().plain() && !isLoopback(config.listen().host())) {
            warnings.add("guests are served over the network WITHOUT TLS: what they compute with can be read and "
                + "changed on the way, their tokens not: hawser.listen.host=" + config.listen().host()
                + " (set hawser.listen.tls-port)");
        }
        if (config.http().loopbackRead()) {
            warnings.add("every user of this machine can read what runs: hawser.http.loopback-read=true");
        }
        return warnings;
    }

    /** Whether only this machine can reach an address. */
    public static boolean isLoopback(String host) {
        try {
            return InetAddress.getByName(host).isLoopbackAddress();
        } catch (UnknownHostException e) {
            // Listening on it will fail and say so.
            return false;
        }
    }
}
