package io.hawser.worker.session;

import io.hawser.worker.move.StateWriter;
import java.io.IOException;

/** The way by which a session's state and the contents of its slabs leave its worker. Session thread. */
interface DepartingSlabs {
    /**
     * Sends the state, and begins to send the slabs. The broker then learns that the session has stopped, at once or
     * when the other end has all.
     *
     * @throws IOException if that cannot begin; the message is for the operator.
     */
    void leave(StateWriter state) throws IOException;

    /** Ends the way. Slabs that are not sent yet stay, and the session can go on afterwards. */
    void end();
}
