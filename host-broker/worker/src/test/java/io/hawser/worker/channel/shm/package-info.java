/** Tests of the shared-memory carrier. */
package io.hawser.worker.channel.shm;
