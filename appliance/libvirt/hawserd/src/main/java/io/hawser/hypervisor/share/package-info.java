/** Obtains and releases a domain's share: the vGPU, the region and the guest's settings together. */
package io.hawser.hypervisor.share;
