package io.hawser.broker.nvml;

import java.util.EnumSet;
import java.util.Set;

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
    PCI_SUBSYSTEM_ID,
    /** The highest generation of PCIe that GPU and machine have, from 1. */
    PCIE_GENERATION,
    /** The same of the GPU alone. */
    GPU_PCIE_GENERATION,
    /** The most lanes that GPU and machine have. */
    MAX_PCIE_WIDTH,
    /** The lanes in use. */
    PCIE_WIDTH;

    /** Those before the peers of the line. */
    public static final Set<Trait> BEFORE_PEERS = EnumSet.range(ECC_MODE, PCI_SUBSYSTEM_ID);
    /** Those behind the peers, for which older guests do not look. */
    public static final Set<Trait> BEHIND_PEERS = EnumSet.complementOf(EnumSet.range(ECC_MODE, PCI_SUBSYSTEM_ID));
}
