package io.hawser.shm.rdma;

/** Whether an RDMA device uses memory of GPUs without a stop in host memory (GPUDirect). */
public enum GpuDirect {
    /** Of GPUs that share a PCIe switch with the device. */
    AUTO,
    /** Of all GPUs whose driver allows it. */
    ON,
    /** Of none. */
    OFF
}
