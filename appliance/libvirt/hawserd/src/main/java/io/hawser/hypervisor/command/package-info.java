/** The administrator's commands. */
package io.hawser.hypervisor.command;
