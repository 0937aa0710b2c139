package io.hawser.broker.stream;

import io.hawser.broker.rest.BrokerResource;
import io.hawser.broker.rest.VgpuResource;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.inject.Inject;
import java.time.Instant;

/** Takes pictures with the same content as the lists of the REST interface. */
@ApplicationScoped
class LivePictures implements PictureSource {
    @Inject
    BrokerResource broker;
    @Inject
    VgpuResource vgpus;

    @Override
    public Picture take() {
        return new Picture(Instant.now(), broker.getBroker(), broker.listGpus(), vgpus.listVgpus(),
            broker.listSessions(), broker.listRegions());
    }
}
