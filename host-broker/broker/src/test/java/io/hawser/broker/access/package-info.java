/** Tests of the broker: access. */
package io.hawser.broker.access;
