package io.hawser.worker.session;

/** Decodes and executes the functions of the API description. Session thread. */
public interface CallDispatcher {
    /**
     * Whether the description has a function with this opcode.
     *
     * @param opcode opcode of a request, not of a control record.
     * @return false when no correct guest sends it.
     */
    boolean isKnown(int opcode);

    /**
     * Whether a request may block the backend until the whole device is idle. Such a request is postponed while a host
     * function waits for the guest. Requests after an asynchronous one do not depend on it.
     *
     * @param opcode a known one.
     * @return whether it may.
     */
    boolean mayWaitForDevice(int opcode);

    /**
     * Whether a request lets a host function end, so that it must be served at once.
     *
     * @param opcode a known one.
     * @return whether it does.
     */
    boolean endsHostFunction(int opcode);

    /**
     * Whether a request launches kernels. Launches need a turn when the vGPU shares its GPU.
     *
     * @param opcode opcode of any request.
     * @return whether it does.
     */
    boolean isLaunch(int opcode);

    /**
     * Serves a request: ends the call or defers it.
     *
     * @param opcode a known one.
     * @param call the request.
     */
    void dispatch(int opcode, Call call);

    /**
     * Called after a request has failed without being deferred, in a handler or in an earlier check.
     *
     * @param opcode a known one.
     * @param call the request, whose record is still readable.
     */
    void failed(int opcode, Call call);
}
