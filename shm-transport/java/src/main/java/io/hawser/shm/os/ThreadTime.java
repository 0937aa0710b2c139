package io.hawser.shm.os;

import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/** The processor time of threads. Any thread; allocates nothing after a thread's first call. */
public final class ThreadTime {
    private static final int CLOCK_THREAD_CPUTIME_ID = 3; // Linux time.h
    private static final long SECOND_NS = 1_000_000_000L;
    private static final MethodHandle CLOCK_GETTIME = Libc.find("clock_gettime", Libc.INT, Libc.INT, Libc.ADDRESS);

    private ThreadTime() {
    }

    /** The processor time of the calling thread in ns; a system call. */
    public static long ranNs() {
        Libc.Scratch scratch = Libc.scratch();
        try {
            int ignored = (int) CLOCK_GETTIME.invokeExact(scratch.state, CLOCK_THREAD_CPUTIME_ID, scratch.struct);
            assert ignored == 0 : "every Linux has the clock of a thread";
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
        return scratch.struct.get(ValueLayout.JAVA_LONG, 0) * SECOND_NS
            + scratch.struct.get(ValueLayout.JAVA_LONG, Long.BYTES);
    }
}
