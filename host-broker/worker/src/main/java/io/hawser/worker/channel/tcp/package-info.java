/** The carrier over a TCP connection, by Netty. */
package io.hawser.worker.channel.tcp;
