/** libvirt: connections that reconnect, events, and adding and removing the device of a vGPU in domains. */
package io.hawser.hypervisor.libvirt;
