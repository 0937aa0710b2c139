package io.hawser.broker.admin;

import io.hawser.broker.ledger.Ledgers;
import io.hawser.broker.ledger.OutsideLook;
import io.hawser.broker.model.Amount;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.nvml.GpuMonitor;
import io.hawser.broker.pool.WorkerPools;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.vgpu.VgpuTable;
import java.util.List;
import java.util.OptionalLong;

/** Checks the ledgers, and compares them with the driver's figures. Event loop only. */
public final class MemoryWatch implements OutsideLook.Watched {
    private final Ledgers ledgers;
    private final VgpuTable vgpus;
    private final SessionRegistry sessions;
    private final WorkerPools pools;
    private final GpuMonitor monitor;
    private final OutsideLook outsideLook = new OutsideLook(this);

    /** Starts without observations. */
    public MemoryWatch(Ledgers ledgers, VgpuTable vgpus, SessionRegistry sessions, WorkerPools pools,
        GpuMonitor monitor) {
        this.ledgers = ledgers;
        this.vgpus = vgpus;
        this.sessions = sessions;
        this.pools = pools;
        this.monitor = monitor;
    }

    /** Makes one check. Each second. */
    public void check() {
        ledgers.sweep();
        outsideLook.check();
    }

    @Override
    public List<SessionView> sessions() {
        return sessions.list();
    }

    @Override
    public List<Device> devices() {
        return pools.state().devices();
    }

    @Override
    public Amount amount(String vgpu, Device device) {
        return vgpus.amount(vgpu, device);
    }

    @Override
    public OptionalLong processBytes(String gpu, long pid) {
        return monitor.processBytes(gpu, pid);
    }

    @Override
    public long contextBytes(String gpu) {
        return monitor.contextBytes(gpu);
    }

    @Override
    public void end(long session, String reason) {
        sessions.end(session, reason);
    }
}
