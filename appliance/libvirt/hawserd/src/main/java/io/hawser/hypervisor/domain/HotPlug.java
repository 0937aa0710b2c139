package io.hawser.hypervisor.domain;

import java.time.Duration;
import java.util.Optional;
import java.util.UUID;
import java.util.function.Consumer;

/**
 * Puts a vGPU's device, {@code <shmem name='hawser-UUID'>} with the alias {@link #ALIAS}, into domains and removes it.
 * It knows machine types, ports and addresses, and nothing about brokers. The caller makes the region's file before,
 * and removes it afterwards. Each call may throw {@link HypervisorException}, and may take its whole timeout.
 */
public interface HotPlug {
    /** The device's alias in each domain. */
    String ALIAS = "ua-hawser";

    /**
     * The reason why a running domain cannot take the device.
     *
     * @param regionBytes its size.
     * @return a sentence that ends with a remedy; empty if the domain can take it.
     */
    Optional<String> refusal(DomainView domain, long regionBytes);

    /**
     * Puts the device into a running domain, and waits until the guest has assigned it an address. Removes the device
     * again if the guest does not. If the device is already there, this method only waits.
     *
     * @param progress receives a sentence for each stage.
     */
    void plug(UUID domain, long regionBytes, Duration timeout, Consumer<String> progress);

    /**
     * Removes the device from a running domain, and waits until the guest has given it back. Does nothing if there is
     * no device.
     */
    void unplug(UUID domain, Duration timeout, Consumer<String> progress);

    /**
     * The definition with the device, at an address where the guest finds it at the next start. Unchanged if it already
     * has the device with that size.
     */
    String withDevice(String inactiveXml, UUID domain, long regionBytes);

    /** The definition without the device; unchanged if it has none. */
    String withoutDevice(String inactiveXml);

    /**
     * The definition with the ports and address space that hot-plug of such a region needs; unchanged if it has them.
     */
    String prepared(String inactiveXml, long regionBytes);

    /**
     * Plugs another domain's region into the running domain that has the GPU and the broker. Does nothing if it has the
     * region. Does not wait for the guest: its broker reports when it has found the device.
     *
     * @param domain its name or UUID.
     * @param tenant the domain that the region belongs to.
     * @return whether this call has added the device. A device that was there before may map a removed file.
     */
    boolean lend(String domain, UUID tenant, long regionBytes);

    /** Asks that domain to give a region back; does nothing if it has none, or does not run. Does not wait. */
    void takeBack(String domain, UUID tenant);

    /** The alias of a tenant's region in the domain that has the GPU. */
    static String lentAlias(UUID tenant) {
        return ALIAS + "-" + tenant;
    }
}
