/** Reads and writes the records that every carrier transports, and computes the proofs of the handshake; no I/O. */
package io.hawser.shm.wire;
