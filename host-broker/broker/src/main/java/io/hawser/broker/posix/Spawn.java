package io.hawser.broker.posix;

import java.lang.foreign.AddressLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import java.util.List;

/**
 * {@code posix_spawnp} and {@code waitid} through {@code java.lang.foreign}. jnr-posix can neither close all other
 * descriptors in the child nor wait without reaping. Any thread.
 */
final class Spawn {
    // glibc 2.36 spawn.h; larger than its types (80 and 336 bytes on x86_64)
    private static final long OPAQUE_BYTES = 1024;
    private static final short POSIX_SPAWN_SETSIGDEF = 0x04;
    private static final short POSIX_SPAWN_SETSIGMASK = 0x08;
    private static final short POSIX_SPAWN_SETSID = 0x80;
    private static final int SIGSET_BYTES = 128;
    // Linux fcntl.h and waitid(2)
    private static final int O_RDONLY = 0;
    private static final int P_PID = 1;
    private static final int WEXITED = 4;
    private static final int WNOWAIT = 0x0100_0000;
    private static final int EINTR = 4;

    private static final Linker LINKER = Linker.nativeLinker();
    private static final AddressLayout ADDRESS = ValueLayout.ADDRESS;
    private static final StructLayout CALL_STATE = Linker.Option.captureStateLayout();
    private static final VarHandle ERRNO = CALL_STATE.varHandle(MemoryLayout.PathElement.groupElement("errno"));

    private static final MethodHandle ACTIONS_INIT = find("posix_spawn_file_actions_init", ADDRESS);
    private static final MethodHandle ACTIONS_DESTROY = find("posix_spawn_file_actions_destroy", ADDRESS);
    private static final MethodHandle ACTIONS_OPEN = find("posix_spawn_file_actions_addopen", ADDRESS,
        ValueLayout.JAVA_INT, ADDRESS, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT);
    private static final MethodHandle ACTIONS_DUP2 = find("posix_spawn_file_actions_adddup2", ADDRESS,
        ValueLayout.JAVA_INT, ValueLayout.JAVA_INT);
    private static final MethodHandle ACTIONS_CLOSEFROM = find("posix_spawn_file_actions_addclosefrom_np", ADDRESS,
        ValueLayout.JAVA_INT);
    private static final MethodHandle ATTRIBUTES_INIT = find("posix_spawnattr_init", ADDRESS);
    private static final MethodHandle ATTRIBUTES_DESTROY = find("posix_spawnattr_destroy", ADDRESS);
    private static final MethodHandle ATTRIBUTES_FLAGS = find("posix_spawnattr_setflags", ADDRESS,
        ValueLayout.JAVA_SHORT);
    private static final MethodHandle ATTRIBUTES_SIGDEFAULT = find("posix_spawnattr_setsigdefault", ADDRESS, ADDRESS);
    private static final MethodHandle ATTRIBUTES_SIGMASK = find("posix_spawnattr_setsigmask", ADDRESS, ADDRESS);
    private static final MethodHandle SPAWN = find("posix_spawnp", ADDRESS, ADDRESS, ADDRESS, ADDRESS,
        ADDRESS, ADDRESS);
    private static final MethodHandle STRERROR = LINKER.downcallHandle(symbol("strerror"),
        FunctionDescriptor.of(ADDRESS, ValueLayout.JAVA_INT));
    private static final MethodHandle WAITID = LINKER.downcallHandle(symbol("waitid"),
        FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ADDRESS,
            ValueLayout.JAVA_INT),
        Linker.Option.captureCallState("errno"));

    private Spawn() {
    }

    private static MemorySegment symbol(String name) {
        return LINKER.defaultLookup().find(name).orElseThrow(() -> new UnsupportedOperationException(
            "the broker needs glibc 2.34 or newer: missing symbol=" + name));
    }

    private static MethodHandle find(String name, MemoryLayout... arguments) {
        return LINKER.downcallHandle(symbol(name), FunctionDescriptor.of(ValueLayout.JAVA_INT, arguments));
    }

    /**
     * Starts a process in a new session, with default signals. It has descriptor 0 (/dev/null), 1 and 2 (both {@code
     * log}) and 3 ({@code control}) and no other.
     *
     * @return its process id.
     * @throws PosixException when the process cannot be started, for example ENOENT.
     */
    static int spawn(List<String> command, List<String> environment, int log, int control) throws PosixException {
        if (log <= 3 || control <= 3) {
            // A dup2 below would overwrite the source of a later one.
            throw new IllegalStateException("descriptors to pass must be above 3: log=" + log + " control=" + control);
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment actions = arena.allocate(OPAQUE_BYTES, 16);
            MemorySegment attributes = arena.allocate(OPAQUE_BYTES, 16);
            check("posix_spawn_file_actions_init", (int) ACTIONS_INIT.invokeExact(actions));
            check("posix_spawnattr_init", (int) ATTRIBUTES_INIT.invokeExact(attributes));
            try {
                MemorySegment devNull = arena.allocateFrom("/dev/null");
                check("addopen", (int) ACTIONS_OPEN.invokeExact(actions, 0, devNull, O_RDONLY, 0));
                check("adddup2", (int) ACTIONS_DUP2.invokeExact(actions, log, 1));
                check("adddup2", (int) ACTIONS_DUP2.invokeExact(actions, log, 2));
                check("adddup2", (int) ACTIONS_DUP2.invokeExact(actions, control, 3));
                check("addclosefrom_np", (int) ACTIONS_CLOSEFROM.invokeExact(actions, 4));
                MemorySegment all = arena.allocate(SIGSET_BYTES, 8).fill((byte) 0xff);
                MemorySegment none = arena.allocate(SIGSET_BYTES, 8);
                check("setsigdefault", (int) ATTRIBUTES_SIGDEFAULT.invokeExact(attributes, all));
                check("setsigmask", (int) ATTRIBUTES_SIGMASK.invokeExact(attributes, none));
                short flags = (short) (POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
                check("setflags", (int) ATTRIBUTES_FLAGS.invokeExact(attributes, flags));
                MemorySegment pid = arena.allocate(ValueLayout.JAVA_INT);
                check("posix_spawnp " + command.getFirst(), (int) SPAWN.invokeExact(pid,
                    arena.allocateFrom(command.getFirst()), actions, attributes, strings(arena, command),
                    strings(arena, environment)));
                return pid.get(ValueLayout.JAVA_INT, 0);
            } finally {
                check("posix_spawnattr_destroy", (int) ATTRIBUTES_DESTROY.invokeExact(attributes));
                check("posix_spawn_file_actions_destroy", (int) ACTIONS_DESTROY.invokeExact(actions));
            }
        } catch (PosixException | RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException("posix_spawnp", e);
        }
    }

    /** Blocks until the child has ended. The child stays unreaped, so that no other process can take its id yet. */
    static void awaitExit(int pid) throws PosixException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(CALL_STATE);
            MemorySegment info = arena.allocate(128, 8);
            int result;
            do {
                result = (int) WAITID.invokeExact(state, P_PID, pid, info, WEXITED | WNOWAIT);
            } while (result != 0 && (int) ERRNO.get(state, 0L) == EINTR);
            if (result != 0) {
                throw new PosixException("waitid " + pid, error((int) ERRNO.get(state, 0L)));
            }
        } catch (PosixException | RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException("waitid", e);
        }
    }

    private static MemorySegment strings(Arena arena, List<String> values) {
        MemorySegment array = arena.allocate(ADDRESS, values.size() + 1L);
        for (int i = 0; i < values.size(); i++) {
            array.setAtIndex(ADDRESS, i, arena.allocateFrom(values.get(i)));
        }
        return array;
    }

    private static void check(String call, int error) throws Throwable {
        if (error != 0) {
            throw new PosixException(call, error(error));
        }
    }

    /** Text of an errno value. */
    static String error(int errno) {
        try {
            MemorySegment text = (MemorySegment) STRERROR.invokeExact(errno);
            return text.reinterpret(256).getString(0);
        } catch (Throwable e) {
            throw new IllegalStateException("strerror", e);
        }
    }
}
