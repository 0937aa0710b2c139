/** The ledger of a vGPU's device memory: what its sessions hold, in memory that broker and workers share. */
package io.hawser.shm.ledger;
