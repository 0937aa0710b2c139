package io.hawser.worker.control;

import io.hawser.worker.channel.shm.SharedRegion;
import java.io.IOException;
import java.util.List;

/**
 * A message from the broker to a worker. The Javadoc of a message names the descriptor that it needs; without one it is
 * -1.
 */
public sealed interface BrokerMessage {
    /** Passes this message to the method of its type. */
    void accept(Handler handler, int descriptor) throws IOException;

    /**
     * Acts on messages, with one method a type, so that a new message does not compile unhandled. A switch over the
     * types would do the same, but the JVM would link it in the jail, at the first message of a session.
     */
    interface Handler {
        void handle(Assign message, int descriptor) throws IOException;
        void handle(Ledger message, int descriptor) throws IOException;
        void handle(Turns message, int descriptor) throws IOException;
        void handle(TurnBell message, int descriptor) throws IOException;
        void handle(Doorbell message, int descriptor) throws IOException;
        void handle(DescriptorSocket message, int descriptor) throws IOException;
        void handle(Watching message, int descriptor) throws IOException;
        void handle(Store message, int descriptor) throws IOException;
        void handle(Image message, int descriptor) throws IOException;
        void handle(NoImage message, int descriptor) throws IOException;
        void handle(Shared message, int descriptor) throws IOException;
        void handle(Unshared message, int descriptor) throws IOException;
        void handle(Found message, int descriptor) throws IOException;
        void handle(NotFound message, int descriptor) throws IOException;
        void handle(Keep message, int descriptor) throws IOException;
        void handle(KeepFor message, int descriptor) throws IOException;
        void handle(Keeper message, int descriptor) throws IOException;
        void handle(SwapOut message, int descriptor) throws IOException;
        void handle(SwapIn message, int descriptor) throws IOException;
        void handle(SwapFreeze message, int descriptor) throws IOException;

        /** Only the helper, which has no jail and no such handler, gets this order. */
        default void handle(Checkpoint message, int descriptor) throws IOException {
            throw new IOException("only a helper moves processes: pid=" + message.pid());
        }

        /** As for {@link Checkpoint}. */
        default void handle(Restore message, int descriptor) throws IOException {
            throw new IOException("only a helper moves processes: pid=" + message.pid());
        }

        void handle(Mover message, int descriptor) throws IOException;
        void handle(MoveSide message, int descriptor) throws IOException;
        void handle(MoveOut message, int descriptor) throws IOException;
        void handle(MoveStream message, int descriptor) throws IOException;
        void handle(MoveIn message, int descriptor) throws IOException;
        void handle(MoveLink message, int descriptor) throws IOException;
        void handle(MoveEnd message, int descriptor) throws IOException;
        void handle(Stripe message, int descriptor) throws IOException;
        void handle(End message, int descriptor) throws IOException;
    }

    /**
     * Serve this session. The message carries the descriptor of the guest's connected socket, or of its region.
     *
     * @param sessionId the broker's number of the session, not secret.
     * @param vgpu name of the vGPU that the session uses.
     * @param memoryBytes device memory that the session may allocate; 0 for no limit but the device's.
     * @param peer the guest's address, for the log.
     * @param program name of the guest's program, chosen by the guest; for the log.
     * @param images digests of the device code that the broker keeps for the vGPU.
     * @param place the guest's place in its region; null when the descriptor is a socket.
     * @param rdma the guest's end of RDMA, in hexadecimal; null when it has offered none.
     * @param rdmaRefusal why the session may not use RDMA; null when it may.
     * @param mayLeave whether the session may follow its vGPU to another broker.
     */
    record Assign(long sessionId, String vgpu, long memoryBytes, String peer, String program, List<String> images,
        SharedRegion.Place place, String rdma, String rdmaRefusal, boolean mayLeave) implements BrokerMessage {
        /** For a guest that has offered no RDMA. */
        public Assign(long sessionId, String vgpu, long memoryBytes, String peer, String program, List<String> images,
            SharedRegion.Place place) {
            this(sessionId, vgpu, memoryBytes, peer, program, images, place, null, null, false);
        }

        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /**
     * Write the offered image to memory. The message carries the memory's descriptor.
     *
     * @param sha256 the image's digest.
     */
    record Store(String sha256) implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /**
     * The image that the worker asked for. The message carries the descriptor of the memory that holds it.
     *
     * @param sha256 the image's digest.
     * @param bytes its length.
     */
    record Image(String sha256, long bytes) implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /**
     * The broker no longer keeps the image that the worker asked for.
     *
     * @param sha256 the image's digest.
     */
    record NoImage(String sha256) implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /**
     * The reply to {@link WorkerMessage.Share}.
     *
     * @param name the name of the shared memory.
     * @param kept whether other sessions can find it.
     */
    record Shared(String name, boolean kept) implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /**
     * The reply to {@link WorkerMessage.Unshare}: the broker now counts the memory that other sessions still have open.
     *
     * @param name the name of the shared memory.
     */
    record Unshared(String name) implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /**
     * Memory that another session of the vGPU has shared, as that session's worker described it. The message carries
     * the memory's descriptor, if that worker has passed one.
     *
     * @param name the name that this worker searched for.
     * @param handle the handle of {@link WorkerMessage.Share}, in hexadecimal.
     * @param bytes its length.
     * @param column of its GPU in the vGPU's ledger.
     */
    record Found(String name, String handle, long bytes, int column) implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /**
     * No other session of the vGPU has shared memory by this name.
     *
     * @param name the name that this worker searched for.
     */
    record NotFound(String name) implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /**
     * Carries the descriptor of the vGPU's ledger, which counts the memory of the session that follows.
     *
     * @param slots number of slots in the ledger.
     * @param slot the session's slot.
     * @param gpus UUIDs of the columns' GPUs.
     * @param contextBytes memory that a context costs on each GPU; shorter where the broker does not know it.
     */
    record Ledger(int slots, int slot, List<String> gpus, List<Long> contextBytes) implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /** Carries the descriptor of the page with the turns on the GPU; {@link TurnBell} follows. */
    record Turns() implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /** Carries the eventfd by which the worker wakes the broker to read the page of turns. */
    record TurnBell() implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /** Carries the socket on which the worker passes descriptors to the broker; see {@link WorkerMessage.Share}. */
    record DescriptorSocket() implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /** The broker has its own copy of the jail's listener, and now answers the worker's system calls. */
    record Watching() implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /** Carries the eventfd that the guest rings; the guest's region follows with {@link Assign}. */
    record Doorbell() implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /**
     * Serve no session, but keep the slabs of swapped sessions in host memory.
     *
     * @param maxBytes limit of that memory.
     * @param aheadBytes memory to allocate before it is needed.
     */
    record Keep(long maxBytes, long aheadBytes) implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /**
     * Keep the slabs of one more session. The message carries the keeper's end of a socket to the session's worker.
     *
     * @param maxBytes limit of its slabs.
     */
    record KeepFor(long maxBytes) implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /**
     * The session that follows may be swapped out. The message carries the worker's end of a socket to the keeper of
     * its GPU.
     *
     * @param isOut whether the session begins without room on the GPU.
     */
    record Keeper(boolean isOut) implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /**
     * Move the session's slabs to the keeper. The worker reports by {@link WorkerMessage.SwapMoved}, and replies with
     * {@link WorkerMessage.SwappedOut}. During the move the order can come again with a higher limit.
     *
     * @param bytes limit of the memory that moves.
     */
    record SwapOut(long bytes) implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /**
     * Move the session's slabs back to the GPU. The worker reports by {@link WorkerMessage.SwapMoved}, and replies with
     * {@link WorkerMessage.SwappedIn}. During the move the order can come again with a higher limit.
     *
     * @param bytes limit of the memory that moves.
     */
    record SwapIn(long bytes) implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /**
     * Make no call of the driver while the session is out, or make calls again. The first is for a move of the whole
     * process, in which each call of the driver would wait. The worker replies to it with {@link
     * WorkerMessage.SwapFrozen}. {@link SwapIn} ends it as well.
     *
     * @param isFrozen whether the session makes no call.
     */
    record SwapFreeze(boolean isFrozen) implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /**
     * For the helper: move the GPU state of another worker to host memory. The helper replies with {@link
     * WorkerMessage.ProcessMoved}.
     *
     * @param pid the process.
     * @param bytes length of its state on the GPU, as far as it is known.
     */
    record Checkpoint(int pid, long bytes) implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /**
     * For the helper: move another worker back to the GPU. The helper replies with {@link WorkerMessage.ProcessMoved}.
     *
     * @param pid the process.
     */
    record Restore(int pid) implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /** Serve no session, but copy the slabs of sessions that move between the worker's GPUs. */
    record Mover() implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /**
     * For the mover: a session's source or target offers its slabs. The message carries the mover's end of a socket to
     * it.
     *
     * @param pair number of the session.
     * @param isSource whether the socket is the source's.
     */
    record MoveSide(int pair, boolean isSource) implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /**
     * Stop the session and give it away. For a worker of the same broker, write its state and offer its slabs to the
     * mover; the message carries the worker's end of a socket to the mover. For another broker, let the guest connect
     * there, and send the session by the connection that the message carries. The worker replies with
     * {@link WorkerMessage.MoveReady}.
     *
     * @param address of the other broker, for the guest; empty for the same one.
     */
    record MoveOut(String address) implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /** The session that follows comes from another worker. The message carries its state. */
    record MoveIn() implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /** The session that follows comes from a worker of another broker. The message carries the connection from it. */
    record MoveStream() implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /** After {@link MoveIn}. Carries the worker's end of a socket to the mover. */
    record MoveLink() implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /**
     * The move has ended. The source exits or goes on. The target serves the guest; it gets this only after a move.
     *
     * @param isMoved whether the session is the target's now.
     */
    record MoveEnd(boolean isMoved) implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /** Carries the socket of a connection that has joined the session as a stripe. */
    record Stripe() implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }

    /**
     * End the session, or the idle worker.
     *
     * @param reason for the guest and the log.
     */
    record End(String reason) implements BrokerMessage {
        @Override
        public void accept(Handler handler, int descriptor) throws IOException {
            handler.handle(this, descriptor);
        }
    }
}
