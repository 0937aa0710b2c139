package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.NativeLibrary;
import io.hawser.cuda.backend.ProcessCheckpoints;
import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.CudaNative;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/** Moves by the driver's {@code cuCheckpointProcess*} functions, which drivers before version 570 lack. */
final class NvidiaCheckpoints implements ProcessCheckpoints {
    private static final Logger LOG = System.getLogger(NvidiaCheckpoints.class.getName());
    private static final int LOCK_ARGS_BYTES = 64; // CUDA 13.0 cuda.h, CUcheckpointLockArgs: timeoutMs, then zeros
    private static final State[] STATES = State.values();

    private final MethodHandle lock;
    private final MethodHandle checkpoint;
    private final MethodHandle restore;
    private final MethodHandle unlock;
    private final MethodHandle getState;

    private NvidiaCheckpoints(NativeLibrary driver) {
        lock = function(driver, "cuCheckpointProcessLock");
        checkpoint = function(driver, "cuCheckpointProcessCheckpoint");
        restore = function(driver, "cuCheckpointProcessRestore");
        unlock = function(driver, "cuCheckpointProcessUnlock");
        getState = function(driver, "cuCheckpointProcessGetState");
    }

    private static MethodHandle function(NativeLibrary driver, String name) {
        return driver.find(name, CUresult.CUDA_ERROR_NOT_SUPPORTED, ValueLayout.JAVA_INT, ValueLayout.ADDRESS);
    }

    /** Starts the driver, without a context. */
    static NvidiaCheckpoints open() {
        Natives.check("cuInit", CudaNative.cuInit(0));
        return new NvidiaCheckpoints(NativeLibrary.open(NvidiaProvider.LIBRARY));
    }

    private static int call(MethodHandle function, int pid, MemorySegment argument) {
        try {
            return (int) function.invokeExact(pid, argument);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    @Override
    public Outcome checkpoint(int pid, int timeoutMs) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(LOCK_ARGS_BYTES, Long.BYTES);
            int result = call(getState, pid, memory);
            if (result != 0) {
                return new Outcome(result, State.RUNNING); // the driver does not reach the process, and changes nothing
            }
            memory.fill((byte) 0).set(ValueLayout.JAVA_INT, 0, timeoutMs);
            result = call(lock, pid, memory);
            result = result != 0 ? result : call(checkpoint, pid, MemorySegment.NULL);
            if (result != 0 && state(pid) == State.LOCKED) {
                int unlocked = call(unlock, pid, MemorySegment.NULL);
                LOG.log(Level.WARNING, "a process stays on its GPU: pid={0,number,#} CUresult={1} unlocked={2}", pid,
                    result, unlocked);
            }
            return new Outcome(result, state(pid));
        }
    }

    @Override
    public Outcome restore(int pid) {
        int result = call(restore, pid, MemorySegment.NULL);
        result = result != 0 ? result : call(unlock, pid, MemorySegment.NULL);
        return new Outcome(result, state(pid));
    }

    private State state(int pid) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_INT);
            int result = call(getState, pid, out);
            int state = out.get(ValueLayout.JAVA_INT, 0);
            return result == 0 && state >= 0 && state < STATES.length ? STATES[state] : State.FAILED;
        }
    }
}
