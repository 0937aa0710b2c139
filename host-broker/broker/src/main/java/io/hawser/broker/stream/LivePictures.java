package io.hawser.broker.stream;

import io.hawser.broker.rest.BrokerResource;
import io.hawser.broker.view.PoolInventory;
import io.hawser.broker.view.Shown;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.inject.Inject;
import java.time.Instant;

/** Takes pictures with the same content as the lists of the REST interface. */
@ApplicationScoped
class LivePictures implements PictureSource {
    @Inject
    BrokerResource broker;
    @Inject
    PoolInventory pool;

    @Override
    public Picture take() {
        return picture(pool.own());
    }

    @Override
    public Picture takeAll() {
        return picture(pool.all());
    }

    private Picture picture(Shown shown) {
        return new Picture(Instant.now(), broker.getBroker(), shown.gpus(), shown.vgpus(), shown.sessions(),
            shown.regions());
    }
}
