/** The data plane: records in from the guest, replies and data out to it, by whatever carrier. */
package io.hawser.worker.channel;
