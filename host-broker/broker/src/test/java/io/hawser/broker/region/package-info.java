/** Tests of the broker: regions. */
package io.hawser.broker.region;
