/** The control socket to the broker: framed JSON both ways, the guest's socket arriving as a passed descriptor. */
package io.hawser.worker.control;
