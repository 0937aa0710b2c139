package io.hawser.hypervisor.domain;

import io.hawser.hypervisor.model.Driver;
import java.util.UUID;

/**
 * A domain as libvirt describes it at one moment.
 *
 * @param id libvirt's number of a running domain; -1 if it does not run.
 * @param running true also while it is paused, false while it is saved.
 * @param liveXml with security information (addresses, aliases, metadata); null if it does not run.
 * @param inactiveXml the definition for the next start; null if it has none (a transient domain).
 */
public record DomainView(UUID uuid, String name, Driver driver, int id, boolean running, String liveXml,
    String inactiveXml) {}
