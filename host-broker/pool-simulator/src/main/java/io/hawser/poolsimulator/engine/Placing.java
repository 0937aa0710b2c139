package io.hawser.poolsimulator.engine;

import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.vgpu.GpuLoad;
import io.hawser.broker.vgpu.PoolPlacement;
import java.util.List;

/** The placement of a vGPU that accepts any GPU: {@link PoolPlacement#anywhere}, except in tests of the count. */
@FunctionalInterface
public interface Placing {
    /** Chooses a home. */
    PoolPlacement.Home anywhere(PoolPlacement rules, Vgpu vgpu, List<GpuLoad> mine) throws VgpuException;
}
