/** Tests of what the carriers share. */
package io.hawser.worker.channel;
