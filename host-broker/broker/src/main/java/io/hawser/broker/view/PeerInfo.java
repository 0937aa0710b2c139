package io.hawser.broker.view;

import io.hawser.broker.model.PeerBroker;
import io.hawser.broker.model.PeerGpu;

/** A broker of the pool; see openapi.yml. */
public record PeerInfo(String name, String id, int number, long epoch, String state, long silentMs,
    String guestEndpoint, String guestTlsEndpoint, String httpEndpoint, String version, int gpus, long totalBytes,
    int vgpus, boolean self) {
    /**
     * Converts a broker to its form in the REST interface.
     *
     * @param vgpus number of its vGPUs.
     * @param self whether it is the one that answers.
     */
    static PeerInfo of(PeerBroker broker, int vgpus, boolean self) {
        return new PeerInfo(broker.name(), broker.id(), broker.number(), broker.epoch(),
            broker.isSilent() ? "silent" : "ready", broker.silence().toMillis(), broker.guest(), broker.guestTls(),
            broker.http(), broker.version(), broker.gpus().size(),
            broker.gpus().stream().mapToLong(PeerGpu::totalBytes).sum(), vgpus, self);
    }
}
