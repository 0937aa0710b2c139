/** GPUs and tenants in simulated time, under the broker's scheduler. */
package io.hawser.simulator.engine;
