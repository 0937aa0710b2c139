package io.hawser.hypervisor;

import java.time.Duration;
import java.util.Optional;
import java.util.UUID;
import java.util.function.Consumer;

/**
 * The device of a vGPU, {@code <shmem name='hawser-UUID'>} with the alias {@link #ALIAS}, put into domains and taken
 * out of them. It knows machine types, ports and addresses, and nothing of brokers: who calls has made the region's
 * file before, and removes it after. Each call may throw {@link HypervisorException}, and may take its whole time.
 */
public interface HotPlug {
    /** The device's alias in each domain. */
    String ALIAS = "ua-hawser";

    /**
     * Why a running domain cannot take the device.
     *
     * @param regionBytes its size.
     * @return a sentence that ends with what to do; empty when it can.
     */
    Optional<String> refusal(DomainView domain, long regionBytes);

    /**
     * Puts the device into a running domain, and waits until its guest has given it an address. When it does not, the
     * device is taken out again. Does nothing but wait when the device is there already.
     *
     * @param progress a sentence for whoever waits, now and then.
     */
    void plug(UUID domain, long regionBytes, Duration timeout, Consumer<String> progress);

    /**
     * Takes the device out of a running domain, and waits until its guest has given it back. Does nothing where there
     * is none.
     */
    void unplug(UUID domain, Duration timeout, Consumer<String> progress);

    /**
     * The definition with the device, at an address where its guest sees it at the next start; as it was when it has
     * it with that size.
     */
    String withDevice(String inactiveXml, UUID domain, long regionBytes);

    /** The definition without the device; as it was when it has none. */
    String withoutDevice(String inactiveXml);

    /** The definition with what it takes to plug a region of that size in while it runs; as it was when it has that. */
    String prepared(String inactiveXml, long regionBytes);

    /**
     * Gives a running domain, the one that has the GPU and the broker, the region of another as well. Does nothing
     * when it has it; does not wait for the guest, whose broker says when it has found the device.
     *
     * @param domain its name or UUID.
     * @param tenant whose region it is.
     * @return whether it is this that has put it in: a device that was there may be of a file that is gone.
     */
    boolean lend(String domain, UUID tenant, long regionBytes);

    /** Asks such a domain to give a region back; nothing where it has none, or does not run. Does not wait. */
    void takeBack(String domain, UUID tenant);

    /** The alias of a tenant's region in the domain that has the GPU. */
    static String lentAlias(UUID tenant) {
        return ALIAS + "-" + tenant;
    }
}
