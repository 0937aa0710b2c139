/** Tests of package {@code load}. */
package io.hawser.simulator.load;
