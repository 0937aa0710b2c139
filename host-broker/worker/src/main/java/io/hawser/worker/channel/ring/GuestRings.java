package io.hawser.worker.channel.ring;

import io.hawser.shm.ring.RingReader;
import io.hawser.shm.ring.RingWriter;

/** The rings between a guest and its session, and the guest's state, as a carrier shows them. Session thread. */
public interface GuestRings {
    /** The ring of the guest's records. */
    RingReader commands();

    /** The ring of the records for the guest. */
    RingWriter replies();

    /** The session thread's way to sleep. */
    RingSleep sleep();

    /** Called after a commit of the replies: lets the guest see them. Never waits for the guest. */
    void committed();

    /** Called after a release of the commands: lets the guest see the room. Never waits for the guest. */
    void released();

    /**
     * Learns what the guest has done, where the rings' positions do not show that by themselves.
     *
     * @return whether there was something.
     */
    default boolean progress() {
        return false;
    }

    /** Whether the guest cannot see some committed replies yet, so that {@link #committed} must be called again. */
    default boolean owesReplies() {
        return false;
    }

    /**
     * The state of the guest. It may have sent records before it left, which are in the ring after this call.
     *
     * @return null while the guest is there; else how it left.
     */
    String departure();

    /**
     * Called once when the session uses the rings no more.
     *
     * @param inOrder whether the guest shall get all replies before it learns of the end.
     */
    default void closed(boolean inOrder) {
    }
}
