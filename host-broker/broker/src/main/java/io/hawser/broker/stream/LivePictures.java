package io.hawser.broker.stream;

import io.hawser.broker.rest.BrokerResource;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.inject.Inject;
import java.time.Instant;
import java.util.List;

/** Pictures as the interface's lists show them. */
@ApplicationScoped
class LivePictures implements PictureSource {
    @Inject
    BrokerResource broker;

    @Override
    public Picture take() {
        return new Picture(Instant.now(), broker.getBroker(), broker.listGpus(), List.of(), broker.listSessions(),
            broker.listRegions());
    }
}
