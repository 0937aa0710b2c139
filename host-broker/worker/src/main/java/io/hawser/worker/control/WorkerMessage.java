package io.hawser.worker.control;

import java.util.List;

/** What a worker tells the broker; each is one JSON object with a {@code type}. */
public sealed interface WorkerMessage {
    /**
     * The worker's devices are open and it waits for a session.
     *
     * @param pid process id.
     * @param backend name of the backend in use.
     * @param jail what the worker's jail is, one line for people.
     * @param devices the GPUs, in the backend's order.
     */
    record Ready(long pid, String backend, String jail, List<Device> devices) implements WorkerMessage { }

    /**
     * The worker is in its jail; before {@link Ready}, and only where the broker is to watch it. It waits for
     * {@link BrokerMessage.Watching}, and closes the descriptor then.
     *
     * @param listener descriptor in the worker by which it is watched.
     * @param backend name of the backend in use.
     */
    record Jailed(int listener, String backend) implements WorkerMessage { }

    /**
     * One GPU.
     *
     * @param name the backend's name of it.
     * @param uuid lower-case hexadecimal with dashes.
     * @param totalBytes memory.
     * @param pciBusId "dddd:bb:dd.0".
     * @param computeCapability "major.minor".
     */
    record Device(String name, String uuid, long totalBytes, String pciBusId, String computeCapability) { }

    /**
     * Totals since the session began.
     *
     * @param calls requests executed.
     * @param replies replies sent.
     * @param roundTrips replies that a guest thread waited for.
     * @param bytesIn record bytes received.
     * @param bytesOut record bytes sent.
     * @param refusedRecords records refused; each ends its session.
     * @param deviceBytes device memory that the session holds now.
     * @param kernels kernels launched.
     * @param gpuTimeMs time with kernels on the GPU that are not done.
     * @param waitedMs time in which kernels were held until it was the vGPU's turn.
     */
    record Stats(long calls, long replies, long roundTrips, long bytesIn, long bytesOut, long refusedRecords,
        long deviceBytes, long kernels, long gpuTimeMs, long waitedMs) implements WorkerMessage { }

    /**
     * The guest has sent device code that the broker does not keep; it may ask for it.
     *
     * @param sha256 its digest, in lower-case hexadecimal.
     * @param bytes its length.
     */
    record Image(String sha256, long bytes) implements WorkerMessage { }

    /**
     * The memory that came with {@code store} has been written, and is open here no more.
     *
     * @param sha256 the image's digest; empty when it could not be written.
     */
    record Stored(String sha256) implements WorkerMessage { }

    /**
     * The guest is about to send device code that the broker keeps.
     *
     * @param sha256 its digest.
     */
    record Want(String sha256) implements WorkerMessage { }

    /**
     * What the broker keeps by this digest has another.
     *
     * @param sha256 the digest.
     */
    record Unfit(String sha256) implements WorkerMessage { }

    /**
     * The guest wants to give other sessions of its vGPU this memory; asks for {@link BrokerMessage.Shared}.
     *
     * @param name random, 32 lower-case hexadecimal digits.
     * @param handle the driver's, 128 lower-case hexadecimal digits.
     * @param bytes length of the allocation.
     */
    record Share(String name, String handle, long bytes) implements WorkerMessage { }

    /**
     * Memory that was shared is there no more.
     *
     * @param name as it was shared.
     */
    record Unshare(String name) implements WorkerMessage { }

    /**
     * The guest wants memory that another session has shared; asks for {@link BrokerMessage.Found}, or NotFound.
     *
     * @param name as the guest says.
     */
    record Find(String name) implements WorkerMessage { }

    /**
     * A fault has ended what the session has on its GPU; its guest is told by each call. At most once.
     *
     * @param result CUresult of the call that told.
     */
    record Lost(int result) implements WorkerMessage { }

    /**
     * The session is over, the worker ends.
     *
     * @param reason one line.
     * @param error true when something went wrong; false when the guest left or the broker ended it.
     */
    record Ended(String reason, boolean error) implements WorkerMessage { }
}
