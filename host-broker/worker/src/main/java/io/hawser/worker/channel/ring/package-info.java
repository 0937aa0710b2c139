/** The link over a pair of rings, which carriers with such rings share. */
package io.hawser.worker.channel.ring;
