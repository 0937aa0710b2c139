/** Device memory that sessions of one vGPU share with each other. */
package io.hawser.broker.ipc;
