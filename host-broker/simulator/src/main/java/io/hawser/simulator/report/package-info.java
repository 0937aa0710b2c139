/** Tables and plots of a simulation's results. */
package io.hawser.simulator.report;
