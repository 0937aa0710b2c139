/** Tests of regions. */
package io.hawser.broker.region;
