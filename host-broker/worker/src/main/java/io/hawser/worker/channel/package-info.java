/** The data plane: records in from the guest's socket, replies and data out to it. */
package io.hawser.worker.channel;
