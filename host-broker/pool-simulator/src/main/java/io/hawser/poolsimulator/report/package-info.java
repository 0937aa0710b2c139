/** Plots. */
package io.hawser.poolsimulator.report;
