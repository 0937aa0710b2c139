/** What happened lately, for people: kept in memory, bounded, and pushed to whoever watches. */
package io.hawser.broker.events;
