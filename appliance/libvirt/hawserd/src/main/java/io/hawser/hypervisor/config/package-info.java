/** The settings of {@code hawserd.conf}. */
package io.hawser.hypervisor.config;
