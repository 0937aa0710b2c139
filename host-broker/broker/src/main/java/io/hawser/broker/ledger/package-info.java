/** What the sessions of each vGPU hold of its GPUs' memory: ledgers that the broker makes and the workers keep. */
package io.hawser.broker.ledger;
