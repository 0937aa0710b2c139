/** The page of shared memory of an event that several sessions record and wait for. */
package io.hawser.shm.events;
