package io.hawser.broker.app;

import io.hawser.broker.Broker;
import io.hawser.broker.LoopPulse;
import io.hawser.broker.admin.MoveService;
import io.hawser.broker.admin.PoolView;
import io.hawser.broker.admin.TokenService;
import io.hawser.broker.admin.VgpuService;
import io.hawser.broker.door.FrontDoor;
import io.hawser.broker.jail.Confinement;
import io.hawser.broker.ledger.Ledgers;
import io.hawser.broker.nvml.GpuMonitor;
import io.hawser.broker.pool.WorkerPools;
import io.hawser.broker.region.Regions;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.store.Database;
import io.hawser.broker.swap.SwapSource;
import io.hawser.broker.turns.TurnMode;
import io.hawser.broker.vgpu.VgpuTable;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.enterprise.inject.Produces;
import jakarta.inject.Singleton;
import java.util.Optional;

/**
 * The application's broker. It produces the broker's parts for the beans that serve them. The application sets the
 * broker before its HTTP server opens, so requests always find one. A bean that exists before that must inject a part
 * as {@code Instance}. Thread-safe.
 */
@ApplicationScoped
public class RunningBroker {
    private volatile Broker broker;

    /** Sets the broker. The application calls it once, at its start. */
    void start(Broker started) {
        broker = started;
    }

    /** The broker; empty before the application has started it. */
    Optional<Broker> find() {
        return Optional.ofNullable(broker);
    }

    /**
     * The broker's parts.
     *
     * @throws IllegalStateException before the application has started it.
     */
    public Broker.Parts parts() {
        return find().orElseThrow(() -> new IllegalStateException("the broker has not started")).parts();
    }

    @Produces
    @Singleton
    LoopPulse pulse() {
        return parts().pulse();
    }

    @Produces
    @Singleton
    Database database() {
        return parts().database();
    }

    @Produces
    @Singleton
    VgpuTable vgpus() {
        return parts().vgpus();
    }

    @Produces
    @Singleton
    PoolView pool() {
        return new PoolView(parts().membership());
    }

    @Produces
    @Singleton
    VgpuService vgpuService() {
        return parts().vgpuService();
    }

    @Produces
    @Singleton
    MoveService moveService() {
        return parts().moveService();
    }

    @Produces
    @Singleton
    TokenService tokenService() {
        return parts().tokenService();
    }

    @Produces
    @Singleton
    GpuMonitor gpuMonitor() {
        return parts().gpuMonitor();
    }

    @Produces
    @Singleton
    WorkerPools pools() {
        return parts().pools();
    }

    @Produces
    @Singleton
    Confinement confinement() {
        return parts().confinement();
    }

    @Produces
    @Singleton
    SessionRegistry sessions() {
        return parts().sessions();
    }

    @Produces
    @Singleton
    Ledgers ledgers() {
        return parts().ledgers();
    }

    @Produces
    @Singleton
    SwapSource swaps() {
        return parts().swaps();
    }

    @Produces
    @Singleton
    TurnMode turnMode() {
        return parts().turnMode();
    }

    @Produces
    @Singleton
    FrontDoor door() {
        return parts().door();
    }

    @Produces
    @Singleton
    Regions regions() {
        return parts().regions();
    }
}
