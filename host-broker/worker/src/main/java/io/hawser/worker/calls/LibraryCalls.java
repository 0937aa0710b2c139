package io.hawser.worker.calls;

import io.hawser.worker.session.Call;
import java.lang.foreign.MemorySegment;

/** The calls of one math library in a session. Session thread. */
interface LibraryCalls {
    /** Serves a call. The first one opens the machine's library. */
    void dispatch(int opcode, Call call);

    /** The session ends: streams that wait for what this library does must go on. */
    default void end() {
        // Most libraries let no stream wait.
    }

    /** As {@link io.hawser.cuda.CallContext#object}, for the call in service. */
    default MemorySegment object(Call call, String type, MemorySegment content) {
        throw new IllegalArgumentException("no such content: type=" + type);
    }

    /** As {@link io.hawser.cuda.CallContext#number}, for the call in service. */
    default MemorySegment number(Call call, MemorySegment content, long bytes) {
        throw new IllegalArgumentException("a call of this library has no numbers behind pointers");
    }

    /** As {@link io.hawser.cuda.CallContext#workspace}, for the call in service. */
    default MemorySegment workspace(Call call, long bytes) {
        throw new IllegalArgumentException("a call of this library has no workspace in host memory");
    }
}
