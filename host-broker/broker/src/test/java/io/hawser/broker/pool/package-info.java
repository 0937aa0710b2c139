/** Tests of the broker: pool. */
package io.hawser.broker.pool;
