/** The commands of hawserctl, one class for each object of the interface. */
package io.hawser.ctl.command;
