/** The command that simulates turns. */
package io.hawser.simulator;
