/** Ledgers of the GPU memory that each vGPU's sessions hold: the broker creates them, and the workers write them. */
package io.hawser.broker.ledger;
