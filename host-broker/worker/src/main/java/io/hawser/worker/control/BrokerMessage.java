package io.hawser.worker.control;

import io.hawser.worker.channel.shm.SharedRegion;
import java.util.List;

/** What the broker tells a worker. */
public sealed interface BrokerMessage {
    /**
     * Serve this session; the descriptor of the guest's connected socket, or of its region, came with the message.
     *
     * @param sessionId the broker's number of the session, not secret.
     * @param vgpu name of the share that the session uses.
     * @param memoryBytes device memory that the session may allocate; 0 for no limit but the device's.
     * @param peer the guest's address, for the log.
     * @param program the guest's program name as it says, for the log.
     * @param images digests of the device code that the broker keeps for the vGPU.
     * @param place where the guest is in its region; null when the descriptor is a socket.
     */
    record Assign(long sessionId, String vgpu, long memoryBytes, String peer, String program, List<String> images,
        SharedRegion.Place place) implements BrokerMessage { }

    /**
     * Write the image that was offered to the memory whose descriptor came with the message.
     *
     * @param sha256 its digest.
     */
    record Store(String sha256) implements BrokerMessage { }

    /**
     * The image that was asked for; the descriptor of its memory came with the message.
     *
     * @param sha256 its digest.
     * @param bytes its length.
     */
    record Image(String sha256, long bytes) implements BrokerMessage { }

    /**
     * The image that was asked for is there no more.
     *
     * @param sha256 its digest.
     */
    record NoImage(String sha256) implements BrokerMessage { }

    /**
     * The answer to sharing memory.
     *
     * @param name which.
     * @param kept whether other sessions can find it.
     */
    record Shared(String name, boolean kept) implements BrokerMessage { }

    /**
     * Memory of another session of the vGPU, as its worker said.
     *
     * @param name by which it was looked for.
     * @param handle the driver's, in hexadecimal.
     * @param bytes its length.
     */
    record Found(String name, String handle, long bytes) implements BrokerMessage { }

    /**
     * No other session of the vGPU has shared memory by this name.
     *
     * @param name by which it was looked for.
     */
    record NotFound(String name) implements BrokerMessage { }

    /**
     * The descriptor of the vGPU's ledger came with the message; it counts the memory of the session in the next one.
     *
     * @param slots its slots.
     * @param slot the session's.
     * @param gpus UUIDs of its columns' GPUs.
     * @param contextBytes what a context costs on each; shorter where the broker does not know.
     */
    record Ledger(int slots, int slot, List<String> gpus, List<Long> contextBytes) implements BrokerMessage { }

    /** The page of turns on the GPU came with the message; its bell follows. */
    record Turns() implements BrokerMessage { }

    /** The eventfd came with the message by which the broker is told to look at the page of turns. */
    record TurnBell() implements BrokerMessage { }

    /** The broker has its own copy of the listener, and answers. */
    record Watching() implements BrokerMessage { }

    /** The eventfd came with the message that the guest of the region in the next one rings. */
    record Doorbell() implements BrokerMessage { }

    /**
     * End the session, or the idle worker.
     *
     * @param reason for the guest and the log.
     */
    record End(String reason) implements BrokerMessage { }
}
