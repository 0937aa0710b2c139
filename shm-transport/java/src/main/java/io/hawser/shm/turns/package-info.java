/** The page of shared memory by which the broker and one worker coordinate turns on a GPU. */
package io.hawser.shm.turns;
