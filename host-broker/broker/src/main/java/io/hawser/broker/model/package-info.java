/** Values that all parts of the broker exchange: vGPUs, sessions, GPUs, peers and refusals. */
package io.hawser.broker.model;
