package io.hawser.hypervisor;

import java.util.UUID;

/**
 * A domain as libvirt has it at one moment.
 *
 * @param id libvirt's number of a running domain; -1 when it does not run.
 * @param running also while it is paused, and not while it is saved.
 * @param liveXml with security information (addresses, aliases, metadata); null when it does not run.
 * @param inactiveXml the definition for the next start; null when it has none (a transient domain).
 */
public record DomainView(UUID uuid, String name, Driver driver, int id, boolean running, String liveXml,
    String inactiveXml) { }
