/** The Unix socket, and HTTP over it. */
package io.hawser.hypervisor.door;
