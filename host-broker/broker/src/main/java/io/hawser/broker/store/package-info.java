/** The database: what outlives the broker. */
package io.hawser.broker.store;
