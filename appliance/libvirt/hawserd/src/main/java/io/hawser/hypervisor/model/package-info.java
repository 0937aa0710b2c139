/** Values: the wish of a domain, its settings and its status. */
package io.hawser.hypervisor.model;
