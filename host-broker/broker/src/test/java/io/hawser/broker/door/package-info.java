/** Tests of the ports for guests. */
package io.hawser.broker.door;
