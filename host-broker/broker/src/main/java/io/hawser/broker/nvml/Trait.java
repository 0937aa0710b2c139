package io.hawser.broker.nvml;

/**
 * Properties of a GPU that no work changes, in their order in the line {@code traits} of a status (hws_status.h). Every
 * vGPU gets them.
 */
public enum Trait {
    /** Whether memory is protected by ECC: 1 or 0. */
    ECC_MODE,
    /** The same after the next restart. */
    PENDING_ECC_MODE,
    /** The device and the vendor, as the PCI bus reports them. */
    PCI_DEVICE_ID,
    /** The board and its vendor. */
    PCI_SUBSYSTEM_ID
}
