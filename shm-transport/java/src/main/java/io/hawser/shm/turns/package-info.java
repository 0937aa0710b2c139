/** What the broker and one worker tell each other of turns on a GPU: a page of shared memory, described once. */
package io.hawser.shm.turns;
