package io.hawser.hypervisor;

/** Settings of guests of Xen, which read them from XenStore. Any thread; a call may block for seconds. */
public interface XenGuestSettings {
    /**
     * Puts a guest's settings at {@code /local/domain/ID/vm-data/hawser}, readable by that domain alone. Repeatable.
     *
     * @param domainId libvirt's, which is Xen's.
     * @throws HypervisorException when XenStore is not there or refuses.
     */
    void put(int domainId, GuestSettings settings);

    /** Removes them; nothing when they, or the domain, are gone. */
    void remove(int domainId);
}
