/** The carrier through a slot of a region of shared memory. */
package io.hawser.worker.channel.shm;
