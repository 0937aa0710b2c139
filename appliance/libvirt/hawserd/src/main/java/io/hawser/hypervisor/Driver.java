package io.hawser.hypervisor;

/** Which driver of libvirt runs a domain. */
public enum Driver {
    /** QEMU, with KVM or without: a vGPU comes as a device or by TCP. */
    QEMU,
    /** Xen by libxl: a vGPU comes by TCP. */
    XEN
}
