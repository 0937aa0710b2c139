/** The ledger of a vGPU's device memory: the memory that its sessions hold, shared between broker and workers. */
package io.hawser.shm.ledger;
