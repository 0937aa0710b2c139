/** Domains: their XML, and what hawserd does with them as interfaces, which libvirt/ and xen/ implement. */
package io.hawser.hypervisor.domain;
