/** Replays of recordings. */
package io.hawser.simulator.replay;
