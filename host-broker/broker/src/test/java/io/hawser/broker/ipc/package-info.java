/** Tests of shared memory. */
package io.hawser.broker.ipc;
