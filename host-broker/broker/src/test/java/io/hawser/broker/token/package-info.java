/** Tests of the broker: token. */
package io.hawser.broker.token;
