package io.hawser.hypervisor.domain;

import io.hawser.hypervisor.model.GuestSettings;

/** The settings of Xen guests, which read them from XenStore. Any thread; a call may block for seconds. */
public interface XenGuestSettings {
    /**
     * Writes a guest's settings to {@code /local/domain/ID/vm-data/hawser}, readable by that domain alone. Repeatable.
     *
     * @param domainId libvirt's and Xen's number of the domain.
     * @throws HypervisorException if XenStore is not there or rejects the write.
     */
    void put(int domainId, GuestSettings settings);

    /** Removes the settings; does nothing if they, or the domain, are gone. */
    void remove(int domainId);
}
