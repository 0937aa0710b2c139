/** Values: what a domain wishes, has and shows. */
package io.hawser.hypervisor.model;
