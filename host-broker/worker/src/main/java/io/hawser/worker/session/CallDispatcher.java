package io.hawser.worker.session;

/** Decodes and executes the described functions. Session thread. */
public interface CallDispatcher {
    /**
     * Whether an opcode has a description.
     *
     * @param opcode of a request, not of the control library.
     * @return false when no honest guest sends it.
     */
    boolean isKnown(int opcode);

    /**
     * Serves a request; the call ends, or is deferred.
     *
     * @param opcode a known one.
     * @param call the request.
     */
    void dispatch(int opcode, Call call);

    /**
     * Told of a request that has ended with an error at once, whoever found it.
     *
     * @param opcode a known one.
     * @param call the request, its record still there.
     */
    void failed(int opcode, Call call);
}
