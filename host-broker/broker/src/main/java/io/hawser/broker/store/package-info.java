/** The database: all data that outlives the broker. */
package io.hawser.broker.store;
