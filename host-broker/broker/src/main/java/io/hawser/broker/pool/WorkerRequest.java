package io.hawser.broker.pool;

import io.hawser.broker.model.RefusedException;
import java.util.List;

/** A session that waits for a worker, as the pools see it. Event loop only. */
public interface WorkerRequest {
    /** Name of the session's vGPU. */
    String vgpu();

    /**
     * Chooses the session's GPUs once the broker knows all GPUs; later calls return the same choice.
     *
     * @return UUIDs; empty while the broker does not know the GPUs.
     * @throws RefusedException when no GPU fits; the message gives the reason.
     */
    List<String> gpus() throws RefusedException;
}
