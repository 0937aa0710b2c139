/** The command that runs a pool's placement in simulated time, and its transactions against PostgreSQL. */
package io.hawser.poolsimulator;
