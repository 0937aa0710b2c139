/** Recent events for people: kept in memory, bounded, and pushed to connected clients. */
package io.hawser.broker.events;
