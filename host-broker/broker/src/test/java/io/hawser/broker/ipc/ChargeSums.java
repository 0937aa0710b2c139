package io.hawser.broker.ipc;

import io.hawser.broker.pool.WorkerMessage;
import java.util.Map;

/**
 * Sums the charges of shared memory.
 *
 * @param bytes the sums, by vGPU.
 */
record ChargeSums(Map<String, Long> bytes) implements SharedMemory.Charges {
    @Override
    public void keep(String vgpu, WorkerMessage.Share share) {
        bytes.merge(vgpu, share.chargedBytes(), Long::sum);
    }

    @Override
    public void release(String vgpu, WorkerMessage.Share share) {
        bytes.merge(vgpu, -share.chargedBytes(), Long::sum);
    }
}
