/** The daemon on the hypervisor: it gives each libvirt domain the vGPU that its metadata asks for. */
package io.hawser.hypervisor;
