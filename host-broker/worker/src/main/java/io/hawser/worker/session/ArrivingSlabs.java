package io.hawser.worker.session;

import java.util.function.Consumer;

/** The way by which the contents of slabs come to a session that arrives. Session thread. */
interface ArrivingSlabs {
    /**
     * Begins to fill all slabs of the session's arena.
     *
     * @param over gets the end once, on the session thread: why the contents are missing; empty when all are there.
     */
    void fetch(Session session, Consumer<String> over);

    /**
     * Ends the way. The session is complete, or cannot be.
     *
     * @param problem why not; empty when it is complete.
     */
    void end(String problem);
}
