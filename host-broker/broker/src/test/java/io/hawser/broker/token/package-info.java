/** Tests of tokens. */
package io.hawser.broker.token;
