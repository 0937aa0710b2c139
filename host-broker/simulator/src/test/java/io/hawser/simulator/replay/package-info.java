/** Tests of package {@code replay}. */
package io.hawser.simulator.replay;
