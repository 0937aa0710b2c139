package io.hawser.worker.control;

import io.hawser.shm.control.WorkerMessageType;
import java.util.List;

/** A message from a worker to the broker; each is one JSON object with a {@code type}. */
public sealed interface WorkerMessage {
    /** The message's type, whose name is in the JSON. */
    WorkerMessageType type();

    /**
     * The worker's devices are open, and it waits for a session.
     *
     * @param pid process id.
     * @param backend name of the backend in use.
     * @param jail description of the worker's jail, one line for people.
     * @param devices the GPUs, in the backend's order.
     */
    record Ready(long pid, String backend, String jail, List<Device> devices) implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.READY;
        }
    }

    /**
     * The worker is in its jail. It sends this before {@link Ready}, and only where the broker watches its system
     * calls. It then waits for {@link BrokerMessage.Watching} and closes its own copy of the listener.
     *
     * @param listener the listener's descriptor in the worker.
     * @param backend name of the backend in use.
     */
    record Jailed(int listener, String backend) implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.JAILED;
        }
    }

    /**
     * The session uses another carrier than the one that its connection began with.
     *
     * @param carrier the carrier's label.
     */
    record Carried(String carrier) implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.CARRIED;
        }
    }

    /**
     * One GPU.
     *
     * @param name the backend's name for it.
     * @param uuid lower-case hexadecimal with dashes.
     * @param totalBytes its memory.
     * @param pciBusId "dddd:bb:dd.0".
     * @param computeCapability "major.minor".
     */
    record Device(String name, String uuid, long totalBytes, String pciBusId, String computeCapability) {}

    /**
     * Totals since the session began.
     *
     * @param calls requests executed.
     * @param replies replies sent.
     * @param roundTrips replies that a guest thread waited for.
     * @param bytesIn record bytes received.
     * @param bytesOut record bytes sent.
     * @param refusedRecords records rejected; each ends its session.
     * @param deviceBytes device memory that the session holds now.
     * @param kernels kernels launched.
     * @param gpuTimeMs time during which the GPU had unfinished kernels of the session.
     * @param waitedMs time during which kernels were held until the vGPU's turn.
     */
    record Stats(long calls, long replies, long roundTrips, long bytesIn, long bytesOut, long refusedRecords,
        long deviceBytes, long kernels, long gpuTimeMs, long waitedMs) implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.STATS;
        }

        /** These totals with more bytes received and sent. */
        public Stats withTraffic(long moreIn, long moreOut) {
            return new Stats(calls, replies, roundTrips, bytesIn + moreIn, bytesOut + moreOut, refusedRecords,
                deviceBytes, kernels, gpuTimeMs, waitedMs);
        }
    }

    /**
     * The guest has sent device code that the broker does not keep. The broker may reply with {@link
     * BrokerMessage.Store}.
     *
     * @param sha256 its digest, in lower-case hexadecimal.
     * @param bytes its length.
     */
    record Image(String sha256, long bytes) implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.IMAGE;
        }
    }

    /**
     * The worker has written the image to the memory of {@code store}, and has closed that memory.
     *
     * @param sha256 the image's digest; empty when the worker could not write it.
     */
    record Stored(String sha256) implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.STORED;
        }
    }

    /**
     * The guest is about to send device code that the broker keeps.
     *
     * @param sha256 its digest.
     */
    record Want(String sha256) implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.WANT;
        }
    }

    /**
     * The image that the broker keeps under this digest has a different digest.
     *
     * @param sha256 the digest.
     */
    record Unfit(String sha256) implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.UNFIT;
        }
    }

    /**
     * The guest wants to share this memory with other sessions of its vGPU. The broker replies {@link
     * BrokerMessage.Shared}.
     *
     * @param name random, 32 lower-case hexadecimal digits.
     * @param handle lower-case hexadecimal digits for the importing worker: the driver's handle, for example.
     * @param bytes length of the allocation; 0 for an event.
     * @param column of its GPU in the vGPU's ledger.
     * @param chargedBytes bytes that the session has claimed for it.
     * @param passed whether a descriptor of the memory has gone ahead, on the socket for descriptors.
     */
    record Share(String name, String handle, long bytes, int column, long chargedBytes, boolean passed)
        implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.SHARE;
        }
    }

    /**
     * Shared memory no longer exists. The broker replies {@link BrokerMessage.Unshared}. The session is charged for the
     * memory until the reply. After that the broker's slot is charged while other sessions have the memory open.
     *
     * @param name the name from {@link Share}.
     */
    record Unshare(String name) implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.UNSHARE;
        }
    }

    /**
     * The guest has closed memory of another session, or could not open it. The worker sends one for each
     * {@link BrokerMessage.Found}.
     *
     * @param name the name in {@link Find}.
     */
    record Release(String name) implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.RELEASE;
        }
    }

    /**
     * The guest wants memory that another session has shared. The broker replies {@link BrokerMessage.Found} or {@link
     * BrokerMessage.NotFound}.
     *
     * @param name the name that the guest gave.
     */
    record Find(String name) implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.FIND;
        }
    }

    /**
     * A fault has destroyed the session's state on its GPU; each of the guest's calls returns the error. Sent at most
     * once.
     *
     * @param result CUresult of the call that reported the fault.
     */
    record Lost(int result) implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.LOST;
        }
    }

    /**
     * The session is over, and the worker exits.
     *
     * @param reason one line.
     * @param error true after a failure; false when the guest left or the broker ended the session.
     */
    record Ended(String reason, boolean error) implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.ENDED;
        }
    }

    /**
     * The session has left the GPU, or stays there.
     *
     * @param bytes length of the slabs that the keeper has got.
     * @param ms time in which pieces were copied, without waits for running work and for the other one of an exchange.
     * @param stays why the memory cannot move now; empty when it has left.
     */
    record SwappedOut(long bytes, long ms, String stays) implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.SWAPPED_OUT;
        }
    }

    /**
     * The session is on the GPU again, or could not come back.
     *
     * @param bytes length of the slabs that have come back.
     * @param ms as in {@link SwappedOut}.
     * @param problem why slabs are still with the keeper; empty when all have come back.
     */
    record SwappedIn(long bytes, long ms, String problem) implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.SWAPPED_IN;
        }
    }

    /** The session is swapped out, and its guest waits for it. */
    record SwapWanted() implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.SWAP_WANTED;
        }
    }

    /**
     * A part of the session has moved. The first on the way out, with no bytes, says that all work has ended.
     *
     * @param bytes length of the pieces that have moved since the order.
     */
    record SwapMoved(long bytes) implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.SWAP_MOVED;
        }
    }

    /**
     * A keeper has allocated memory.
     *
     * @param bytes all of its memory for slabs.
     */
    record Kept(long bytes) implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.KEPT;
        }
    }

    /**
     * The session makes no call of the driver until {@link BrokerMessage.SwapIn} or {@link BrokerMessage.SwapFreeze}.
     *
     * @param stays why it goes on to make calls; empty when it makes none.
     */
    record SwapFrozen(String stays) implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.SWAP_FROZEN;
        }
    }

    /**
     * The helper has moved a process, or has failed to.
     *
     * @param pid the process.
     * @param result CUresult.
     * @param state of the process afterwards, a CUprocessState.
     * @param ms time that the move took.
     */
    record ProcessMoved(int pid, int result, int state, long ms) implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.PROCESS_MOVED;
        }
    }

    /**
     * The reply to {@link BrokerMessage.MoveOut}. Before it, without a reason, the worker has passed the state's
     * descriptor, then that of the guest's socket, and then those of the further connections.
     *
     * @param reason why the session cannot move, and goes on; empty when it has stopped.
     * @param bytes length of its slabs.
     * @param socket whether the guest's socket was passed.
     * @param stripes number of further connections that were passed.
     */
    record MoveReady(String reason, long bytes, boolean socket, int stripes) implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.MOVE_READY;
        }
    }

    /**
     * The session from {@link BrokerMessage.MoveIn} is complete, or cannot be made.
     *
     * @param reason why not; empty when it is complete.
     * @param ms time that it took.
     */
    record MovedIn(String reason, long ms) implements WorkerMessage {
        @Override
        public WorkerMessageType type() {
            return WorkerMessageType.MOVED_IN;
        }
    }
}
