/** A pool of brokers in simulated time, which runs the broker's own placement. */
package io.hawser.poolsimulator.engine;
