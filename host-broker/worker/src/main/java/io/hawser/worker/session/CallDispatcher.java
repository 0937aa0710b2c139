package io.hawser.worker.session;

import io.hawser.cuda.Move;
import java.lang.foreign.MemorySegment;

/** Decodes and executes the functions of the API description. Session thread. */
public interface CallDispatcher {
    /**
     * Whether the description has a function with this opcode.
     *
     * @param opcode opcode of a request, not of a control record.
     * @return false when no correct guest sends it.
     */
    boolean isKnown(int opcode);

    /** The meaning of a request for a session that moves. */
    Move move(int opcode);

    /** Name of a function, for people. */
    String name(int opcode);

    /**
     * Whether a request may block the backend until the whole device is idle. Such a request is postponed while a host
     * function waits for the guest. Requests after an asynchronous one do not depend on it.
     *
     * @param opcode a known one.
     * @param isAwaited whether the guest waits for its result.
     * @return whether it may.
     */
    boolean mayWaitForDevice(int opcode, boolean isAwaited);

    /**
     * Whether a request lets a host function end, so that it must be served at once.
     *
     * @param opcode a known one.
     * @return whether it does.
     */
    boolean endsHostFunction(int opcode);

    /**
     * Whether a request puts work into a stream. Work behind a host function that waits for the guest is limited.
     *
     * @param opcode opcode of any request.
     * @return whether it may.
     */
    boolean issuesWork(int opcode);

    /**
     * Whether a stream may wait for the guest because of a request.
     *
     * @param opcode opcode of any request.
     * @return whether it may.
     */
    boolean opensGate(int opcode);

    /**
     * Whether a request copies device memory to the region in the stream that it names.
     *
     * @param opcode opcode of any request.
     * @return whether it does.
     */
    boolean copiesToRegion(int opcode);

    /**
     * Whether a request asks for the state of a stream or an event, or waits for it. Such a request may overtake others
     * that do not change this state.
     *
     * @param opcode opcode of any request.
     * @return whether it does.
     */
    boolean asks(int opcode);

    /**
     * Whether the guest learns by the success of a request that work is done, and the request did not wait for it.
     *
     * @param opcode opcode of any request.
     * @return whether it does.
     */
    boolean tellsProgress(int opcode);

    /**
     * The state for which a request asks.
     *
     * @param opcode an opcode that {@link #asks}.
     * @param record memory that begins with its record.
     * @return the guest's id of the stream or event.
     */
    long asked(int opcode, MemorySegment record);

    /**
     * Whether a request changes the state for which another one asks.
     *
     * @param opcode the request's opcode.
     * @param record memory that begins with its record.
     * @param asking the opcode of the other one, which {@link #asks}.
     * @param asked its stream or event.
     * @return whether it may.
     */
    boolean changes(int opcode, MemorySegment record, int asking, long asked);

    /**
     * The answer to a request that {@link #asks} for the state of unfinished work.
     *
     * @param opcode an opcode that {@link #asks}.
     * @param asked the stream or event.
     * @return a CUresult; 0 if the request must wait for the work or for its turn.
     */
    int unfinished(int opcode, long asked);

    /**
     * Whether a request launches kernels that need a turn when the vGPU shares its GPU. Kernels that wait for other
     * ranks need none: the ranks would wait for each other's turns.
     *
     * @param opcode opcode of any request.
     * @param bytes holds its record.
     * @param offset of the record.
     * @return whether it does.
     */
    boolean needsTurn(int opcode, MemorySegment bytes, long offset);

    /**
     * Where a request copies between host and device.
     *
     * @param opcode opcode of any request.
     */
    CopyWindow.Direction copies(int opcode);

    /**
     * Whether a graph can contain what a request does: it is a call of a library with work for a stream.
     *
     * @param opcode any number.
     * @return whether {@link Call#serveInner} can serve it.
     */
    boolean isCapturable(int opcode);

    /**
     * Serves a request: ends the call or defers it.
     *
     * @param opcode a known one.
     * @param call the request.
     */
    void dispatch(int opcode, Call call);

    /**
     * Resolves an argument of a library call ({@link io.hawser.cuda.CallContext#object}).
     *
     * @param call the request.
     * @param type the structure of the content.
     * @param content the structure.
     * @return the argument; undefined when the call has ended.
     */
    MemorySegment object(Call call, String type, MemorySegment content);

    /**
     * Resolves a number of a library call ({@link io.hawser.cuda.CallContext#number}).
     *
     * @param content the structure with the number, or with its address.
     * @param bytes size of the number.
     * @return undefined when the call is rejected.
     */
    MemorySegment number(Call call, MemorySegment content, long bytes);

    /** As {@link io.hawser.cuda.CallContext#workspace}, for the call in service. */
    MemorySegment workspace(Call call, long bytes);

    /** The session ends: streams that wait for a library must go on. */
    void end();

    /**
     * Called after a request has failed without being deferred, in a handler or in an earlier check.
     *
     * @param opcode a known one.
     * @param call the request, whose record is still readable.
     */
    void failed(int opcode, Call call);
}
