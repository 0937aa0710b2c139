/** Loads that tenants put on GPUs, and the placement of tenants. */
package io.hawser.simulator.load;
