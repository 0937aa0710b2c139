/** XenStore's protocol over xenstored's socket, and the settings of guests in XenStore. */
package io.hawser.hypervisor.xen;
