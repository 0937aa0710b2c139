/** The passes, which bring each domain to the state that its metadata asks for. */
package io.hawser.hypervisor.reconcile;
