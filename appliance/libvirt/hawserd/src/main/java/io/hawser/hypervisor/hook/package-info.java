/** The answers to libvirt's hooks. */
package io.hawser.hypervisor.hook;
