package io.hawser.broker.config;

import io.quarkus.runtime.configuration.MemorySize;
import io.smallrye.config.WithDefault;
import java.util.List;

/** A named share of GPUs. */
public interface VgpuConfig {
    /**
     * Device memory on each GPU of the vGPU, for all its sessions together. The broker reserves it there. With 0
     * the vGPU shares the memory that other vGPUs have not reserved. Range: 0 or more.
     */
    @WithDefault("0")
    MemorySize memoryBytes();

    /**
     * Weight of the vGPU among the vGPUs that use a GPU at the same time. Under NVIDIA's MPS it is the percentage
     * of the GPU that the vGPU may use. Range: 1 to 100.
     */
    @WithDefault("100")
    int computeShare();

    /**
     * Whether other vGPUs may share the GPUs of the vGPU. With {@code exclusive} the broker places no other vGPU
     * there. Range: {@code shared}, {@code exclusive}.
     */
    @WithDefault("shared")
    String mode();

    /**
     * GPUs of the vGPU. With {@code any} the broker chooses one by {@link BrokerConfig#placement()} when it creates
     * the vGPU. A list names GPUs by numbers from 0, by UUIDs or by their beginnings ({@code GPU-1b2c3d4e}), in the
     * order in which guests see them. Range: {@code any}, {@code all}, or a list with commas.
     */
    @WithDefault("any")
    String gpus();

    /** Carriers by which guests may use the vGPU. Range: {@code tcp}, {@code shm}. */
    @WithDefault("tcp,shm")
    List<String> carriers();

    /**
     * Sessions of the vGPU at a time. With 0 only {@link BrokerConfig.Sessions#max()} limits them. Range: 0 to 1000000.
     */
    @WithDefault("0")
    int maxSessions();

    /**
     * With whom the processes of its guests exchange data by NCCL: {@code none} or {@code host}, the other
     * processes of the vGPU. The workers of such a vGPU share a network of their own. Range: {@code none},
     * {@code host}.
     */
    @WithDefault("none")
    String communication();

    /**
     * Whether the broker may move the memory of the vGPU to the host while the vGPU is idle and others need the GPU's
     * memory. A swappable vGPU reserves memory, is shared, and has one GPU and no communication. {@link
     * BrokerConfig#overcommit()} counts swappable vGPUs only.
     */
    @WithDefault("false")
    boolean swappable();

    /**
     * Whether sessions of the vGPU may use RDMA, with {@code hawser.rdma.enabled}. Such a session begins over TCP,
     * which {@link #carriers()} must hold. Its worker can then send to the guest's fabric.
     */
    @WithDefault("false")
    boolean rdma();
}
