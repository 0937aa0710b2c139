/** Tokens of guests for vGPUs, and of clients for the REST interface. */
package io.hawser.broker.token;
