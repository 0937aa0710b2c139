/** Tests of the state of sessions that move. */
package io.hawser.worker.move;
