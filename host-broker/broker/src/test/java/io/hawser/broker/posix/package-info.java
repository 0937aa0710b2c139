/** Tests of the broker: posix. */
package io.hawser.broker.posix;
