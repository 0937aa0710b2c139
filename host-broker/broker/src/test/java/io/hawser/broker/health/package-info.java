/** Tests of the broker: health. */
package io.hawser.broker.health;
