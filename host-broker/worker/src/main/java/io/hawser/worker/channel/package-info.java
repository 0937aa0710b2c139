/** The data plane: receives the guest's records, and sends replies and data to the guest, over every carrier. */
package io.hawser.worker.channel;
