/** The front door: guests connect, prove who they are, and their socket is passed to a worker. */
package io.hawser.broker.door;
