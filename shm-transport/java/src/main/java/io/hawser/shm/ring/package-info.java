/** The two ends of a ring in shared memory, and waiting for the other end; as shm-transport/c/shm/hws_ring.h. */
package io.hawser.shm.ring;
