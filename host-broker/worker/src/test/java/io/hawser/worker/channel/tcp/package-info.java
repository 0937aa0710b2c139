/** Tests of the TCP link's parts. */
package io.hawser.worker.channel.tcp;
