/** Tests of child processes and sockets. */
package io.hawser.broker.posix;
