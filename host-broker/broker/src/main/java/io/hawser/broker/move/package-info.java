/** Moves running sessions to another GPU of this broker. */
package io.hawser.broker.move;
