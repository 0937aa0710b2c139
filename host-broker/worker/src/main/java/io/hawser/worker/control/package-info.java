/**
 * The control socket to the broker: framed JSON in both directions. The guest's socket arrives as a passed descriptor.
 */
package io.hawser.worker.control;
