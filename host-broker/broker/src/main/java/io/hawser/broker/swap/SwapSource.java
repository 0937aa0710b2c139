package io.hawser.broker.swap;

import io.hawser.broker.model.SwapInfo;

/** Reports where the memory of swappable vGPUs is. Any thread; an answer does not wait. */
@FunctionalInterface
public interface SwapSource {

    /**
     * The state of a swappable vGPU's memory.
     *
     * @param vgpu the name of a swappable vGPU; it may have been deleted meanwhile.
     * @return never null; the counters of a vGPU never shrink during its life.
     */
    SwapInfo of(String vgpu);
}
