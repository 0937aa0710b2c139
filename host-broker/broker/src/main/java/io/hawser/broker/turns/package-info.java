/** Turns of vGPUs that share a GPU: who may launch kernels, by the time that each has used. */
package io.hawser.broker.turns;
