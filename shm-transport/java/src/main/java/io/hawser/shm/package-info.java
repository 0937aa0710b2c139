/** Reading and writing the records that every carrier transports, and the proof of the handshake; no I/O. */
package io.hawser.shm;
