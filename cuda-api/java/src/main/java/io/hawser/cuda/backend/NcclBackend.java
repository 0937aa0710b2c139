package io.hawser.cuda.backend;

import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * NCCL of a GPU. Results are of ncclResult_t; no method throws for any input of a guest. Session thread, except where a
 * method states otherwise.
 */
public interface NcclBackend extends AutoCloseable {
    /** Whether the broker lets this worker communicate with the other workers of its vGPU. */
    static boolean mayCommunicate() {
        return "host".equals(System.getenv("HAWSER_COMMUNICATION"));
    }

    /** As ncclGetVersion; {@code value} receives an int. */
    int version(MemorySegment value);

    /** As ncclGetUniqueId: this process then awaits the other ranks. {@code id} receives 128 bytes. */
    int uniqueId(MemorySegment id);

    /** Device memory that a communicator takes. */
    long communicatorBytes();

    /**
     * Makes communicators, and waits for all their ranks. Any thread but the session's.
     *
     * @param members valid ones, each in a context of its own.
     * @param made receives the native communicator of each member, 0 for an absent one, and its place.
     */
    int make(List<NcclMember> members, Made[] made);

    /** A member's new communicator. */
    record Made(long comm, int ranks, int rank) {
        /** The place of an absent member. */
        public static final Made ABSENT = new Made(0, 0, 0);
    }

    /**
     * Issues the operations of a group, which wait for other ranks in their streams. May change the current context.
     *
     * @param operations valid ones with checked addresses.
     */
    int run(List<NcclOperation> operations);

    /** As ncclCommFinalize. Any thread but the session's. */
    int finish(long comm);

    /** Ends a communicator: as ncclCommAbort or ncclCommDestroy. Any thread but the session's. */
    int end(long comm, boolean isAbort);

    /** As ncclCommGetAsyncError. */
    int asyncError(long comm);

    /** Aborts everything: operations in streams end, and so does {@link #make}. Any thread. */
    @Override
    void close();
}
