/** libvirt: connections that come back, events, and putting the device of a vGPU into domains and out of them. */
package io.hawser.hypervisor.libvirt;
