/** What the broker needs of the operating system: spawning, socket pairs, passing descriptors, reaping. */
package io.hawser.broker.posix;
