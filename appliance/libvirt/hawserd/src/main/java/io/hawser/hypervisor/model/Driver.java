package io.hawser.hypervisor.model;

/** The libvirt driver that runs a domain. */
public enum Driver {
    /** QEMU, with or without KVM: the guest uses a device or TCP. */
    QEMU,
    /** Xen by libxl: the guest uses TCP. */
    XEN
}
