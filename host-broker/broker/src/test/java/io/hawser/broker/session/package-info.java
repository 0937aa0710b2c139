/** Tests of sessions. */
package io.hawser.broker.session;
