/** The state of a session that moves to another worker, as bytes, and the copies of its slabs. */
package io.hawser.worker.move;
