/** The names of the messages on the socket between the broker and a worker, for both sides. */
package io.hawser.shm.control;
