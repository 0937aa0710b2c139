/** The client of a broker's REST interface and of hawserd: settings, credentials, requests, JSON and units. */
package io.hawser.client;
