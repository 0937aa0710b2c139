package io.hawser.hypervisor.domain;

import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.model.Wish;
import java.time.Duration;
import java.util.Optional;
import java.util.UUID;
import java.util.function.Consumer;

/**
 * Gives domains virtual functions of adapters, and takes them back. It knows networks and adapters, and nothing about
 * brokers. Any thread. Each call may throw {@link HypervisorException}; a call with a timeout may take all of it.
 */
public interface Functions {
    /**
     * Completes a wish with a network: of an InfiniBand adapter with the function that the domain shall get. The choice
     * stays reserved for the domain until {@link #chosen}, at most for a while.
     *
     * @throws HypervisorException with the reason if the network cannot serve the domain.
     */
    Wish choose(DomainView domain, Wish wish);

    /** A command that chose a function has ended: the domain has the function, or does not get it. */
    void chosen(UUID domain);

    /**
     * The reason why a running domain cannot get the function of a wish.
     *
     * @return a sentence; empty if it can.
     */
    Optional<String> refusal(DomainView domain, Wish wish);

    /**
     * Adds the function of a wish to a running domain. Waits until the guest has assigned it an address, where QEMU
     * knows that; removes it again if the guest does not.
     *
     * @param progress receives a sentence for each stage.
     */
    void plug(UUID domain, Wish wish, Duration timeout, Consumer<String> progress);

    /**
     * Removes the function from a running domain, and waits until the guest has given it back. Does nothing if it has
     * none.
     */
    void unplug(UUID domain, Duration timeout, Consumer<String> progress);

    /**
     * The definition with the function of a wish, or without one.
     *
     * @param wish null for none.
     * @param functionBefore that the definition's metadata named; empty if none.
     */
    String defined(String inactiveXml, Driver driver, Wish wish, String functionBefore);

    /** Prepares the function of a domain that is about to start. Does not call libvirt. */
    void prepare(UUID domain, Wish wish);

    /**
     * Frees the function of a domain that has stopped. Does not call libvirt.
     *
     * @param function of an InfiniBand adapter; empty for none.
     */
    void release(UUID domain, String function);
}
