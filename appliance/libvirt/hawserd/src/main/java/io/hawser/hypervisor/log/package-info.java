/** The log of the daemon. */
package io.hawser.hypervisor.log;
