/** Turns of vGPUs that share a GPU: which vGPU may launch kernels, by the time that each has used. */
package io.hawser.broker.turns;
