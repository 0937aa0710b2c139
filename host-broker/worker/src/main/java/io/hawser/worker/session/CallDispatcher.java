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
     * Whether a request may make the backend wait for the whole device, and so is put off while a host function waits
     * for the guest. If it is asynchronous, what follows it does not depend on it.
     *
     * @param opcode a known one.
     * @return whether it may.
     */
    boolean mayWaitForDevice(int opcode);

    /**
     * Whether a request lets a host function end, so that nothing may hold it up.
     *
     * @param opcode a known one.
     * @return whether it does.
     */
    boolean endsHostFunction(int opcode);

    /**
     * Whether a request launches kernels: a vGPU that shares its GPU takes turns in that.
     *
     * @param opcode of any request.
     * @return whether it does.
     */
    boolean isLaunch(int opcode);

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
