/** Arrivals of vGPUs, generated or recorded. */
package io.hawser.poolsimulator.load;
