/** Tests of the pools of workers. */
package io.hawser.broker.pool;
