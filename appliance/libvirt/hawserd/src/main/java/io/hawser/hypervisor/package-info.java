/** The daemon on the hypervisor: it gives each domain of libvirt the vGPU that its metadata asks for. */
package io.hawser.hypervisor;
