/** The front door: guests connect and prove their tokens, and a worker receives their sockets. */
package io.hawser.broker.door;
