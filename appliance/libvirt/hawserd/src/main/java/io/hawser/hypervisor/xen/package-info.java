/** XenStore's protocol over the socket of xenstored, and the settings of guests that it carries. */
package io.hawser.hypervisor.xen;
