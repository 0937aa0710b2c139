/** Tests of package {@code engine}. */
package io.hawser.simulator.engine;
