package io.hawser.hypervisor.domain;

/**
 * A network as libvirt describes it at one moment.
 *
 * @param xml of the active network, or else of its definition.
 */
public record NetworkView(boolean active, String xml) {}
