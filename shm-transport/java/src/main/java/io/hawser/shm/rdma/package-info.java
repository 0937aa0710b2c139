/** One end of a session over RDMA: the C library's functions and memory. */
package io.hawser.shm.rdma;
