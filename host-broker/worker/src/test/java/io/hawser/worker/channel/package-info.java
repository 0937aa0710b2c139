/** Tests of the code that both carriers share. */
package io.hawser.worker.channel;
