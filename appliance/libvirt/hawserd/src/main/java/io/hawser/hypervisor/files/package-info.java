/** The files that hawserd makes for domains: regions, and the settings of guests that use TCP. */
package io.hawser.hypervisor.files;
