package io.hawser.broker.config;

import io.quarkus.runtime.configuration.MemorySize;
import io.smallrye.config.WithDefault;
import java.time.Duration;

/** Memory of swappable vGPUs that is not on its GPU. */
public interface SwapConfig {
    /**
     * Memory of the host for the swapped sessions of one GPU. When it is full, swappable vGPUs of that GPU get no
     * further session. With 0 no memory is moved. Range: 0 or more.
     */
    @WithDefault("0")
    MemorySize memory();

    /**
     * Part of it that the broker allocates and pins before it is needed. That takes about 0.2 seconds a gigabyte; the
     * first swaps wait for what they need. Range: 0 or more.
     */
    @WithDefault("0")
    MemorySize ahead();

    /** How long memory that has come to its GPU stays there at least. Range: 0 or more. */
    @WithDefault("2s")
    Duration stay();

    /**
     * How long a vGPU must have been idle before it leaves its GPU for one that waits. Less than a second counts as a
     * second. Range: 0 or more.
     */
    @WithDefault("1s")
    Duration idle();

    /**
     * How long a vGPU that is never idle stays on its GPU while another one waits. A vGPU with a larger share than
     * the others stays longer. Range: 0 or more.
     */
    @WithDefault("10s")
    Duration turn();

    /**
     * How long a vGPU whose memory is out must have been idle before the rest of its sessions' GPU state leaves its GPU
     * as well: contexts, code and libraries. Less than a second counts as a second. With 0 this state always stays.
     * Range: 0 or more.
     */
    @WithDefault("10m")
    Duration deep();
}
