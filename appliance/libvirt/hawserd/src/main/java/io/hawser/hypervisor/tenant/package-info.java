/** hawserd's own state of each domain, a state machine, and what it reports to waiting commands. */
package io.hawser.hypervisor.tenant;
