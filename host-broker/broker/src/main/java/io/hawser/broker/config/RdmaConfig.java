package io.hawser.broker.config;

import io.hawser.shm.rdma.GpuDirect;
import io.smallrye.config.WithDefault;
import java.time.Duration;
import java.util.Optional;

/** Sessions over RDMA: InfiniBand or RoCE. */
public interface RdmaConfig {
    /**
     * Whether workers open an RDMA device. Sessions use it where their guest asks for it and their vGPU allows it by
     * {@code hawser.vgpus.NAME.rdma}. RDMA does not encrypt.
     */
    @WithDefault("false")
    boolean enabled();

    /** Name of the device, as {@code ibv_devices} shows it. Default: the first device with an active port. */
    Optional<String> device();

    /** Number of the device's port. With 0 it is the first active one. Range: 0 to 255. */
    @WithDefault("0")
    int port();

    /**
     * Index of the port's address in its table of GIDs. With -1 the worker finds it: RoCE version 2 before version 1,
     * IPv4 before IPv6. Range: -1 to 255.
     */
    @WithDefault("-1")
    int gidIndex();

    /** Index of the partition in the port's table of partition keys. Range: 0 to 65535. */
    @WithDefault("0")
    int partition();

    /** InfiniBand's service level, which selects the priority. Range: 0 to 15. */
    @WithDefault("0")
    int serviceLevel();

    /** Traffic class in the packets' global header; of RoCE it holds DSCP and ECN. Range: 0 to 255. */
    @WithDefault("0")
    int trafficClass();

    /** How long a link may be down before its sessions are lost. Range: 1ms to 10m. */
    @WithDefault("8s")
    Duration retry();

    /**
     * Whether the RDMA device reads and writes the GPU's memory without a stop in host memory (GPUDirect). {@code auto}
     * chooses the GPUs below the same PCIe switch: to others the way is often slower than through host memory.
     * {@code on} chooses every GPU. The kernel must support dma-buf or have nvidia-peermem. Where the device refuses,
     * copies pass through host memory. Range: {@code auto}, {@code on}, {@code off}.
     */
    @WithDefault("auto")
    GpuDirect gpuDirect();
}
