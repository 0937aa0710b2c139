/** System calls of the broker: spawning, socket pairs, descriptor passing, reaping. */
package io.hawser.broker.posix;
