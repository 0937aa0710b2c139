/** Tests of the broker: door. */
package io.hawser.broker.door;
