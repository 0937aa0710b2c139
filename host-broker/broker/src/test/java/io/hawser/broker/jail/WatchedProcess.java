package io.hawser.broker.jail;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;

/**
 * A process whose calls of openat, newfstatat, stat, access, unlink, unlinkat, symlink, mkdir and socket a watcher
 * answers. The process prints the listener's number and waits for a line. Each argument is {@code socket},
 * {@code pause}, {@code FLAGS:PATH}, or the name of a call with a path. {@code write:PATH} and {@code read:PATH} open
 * shared memory, and write or read its first byte; {@code put:PATH} and {@code get:PATH} do so with a file that is
 * written once. For each, the process makes the call and prints a line with the descriptor, the mode, the size, the
 * byte or the negated errno.
 */
final class WatchedProcess {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
    private static final VarHandle ERRNO = Linker.Option.captureStateLayout()
        .varHandle(MemoryLayout.PathElement.groupElement("errno"));
    private static final MethodHandle SYSCALL = Linker.nativeLinker().downcallHandle(
        Linker.nativeLinker().defaultLookup().findOrThrow("syscall"),
        FunctionDescriptor.of(LONG, LONG, LONG, LONG, LONG, LONG, LONG), Linker.Option.captureCallState("errno"),
        Linker.Option.firstVariadicArg(1));
    // Linux filter.h, seccomp.h: load the number; openat, newfstatat, stat, access, symlink, unlink, unlinkat, mkdir or
    // socket: SECCOMP_RET_USER_NOTIF; else allow
    private static final long[][] PROGRAM = {{0x20, 0, 0, 0}, {0x15, 9, 0, 257}, {0x15, 8, 0, 262}, {0x15, 7, 0, 4},
        {0x15, 6, 0, 21}, {0x15, 5, 0, 88}, {0x15, 4, 0, 87}, {0x15, 3, 0, 263}, {0x15, 2, 0, 83}, {0x15, 1, 0, 41},
        {0x06, 0, 0, 0x7fff_0000},
        {0x06, 0, 0, 0x7fc0_0000}};

    private WatchedProcess() {
    }

    private static long call(long number, long a, long b, long c) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(Linker.Option.captureStateLayout());
            long result = (long) SYSCALL.invokeExact(state, number, a, b, c, 0L, 0L);
            return result < 0 ? -(int) ERRNO.get(state, 0L) : result;
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    /** The mode or the size of a file, or the negated errno. */
    private static long describe(MemorySegment path, boolean isOld, boolean isSize) {
        MemorySegment stat = Arena.global().allocate(144, 8);
        long result = isOld ? call(4, path.address(), stat.address(), 0)
            : call(262, -100, path.address(), stat.address());
        return result < 0 ? result : isSize ? stat.get(LONG, 48) : stat.get(ValueLayout.JAVA_INT, 24);
    }

    /** The number of a device. */
    private static long device(MemorySegment path) {
        MemorySegment stat = Arena.global().allocate(144, 8);
        long result = call(262, -100, path.address(), stat.address());
        return result < 0 ? result : stat.get(LONG, 40);
    }

    /** Whether a map of memory names memory of this process. */
    private static long findsItself(MemorySegment path) {
        long descriptor = call(257, -100, path.address(), 0);
        if (descriptor < 0) {
            return descriptor;
        }
        MemorySegment bytes = Arena.global().allocate(1 << 20);
        StringBuilder map = new StringBuilder();
        for (long count = call(0, descriptor, bytes.address(), bytes.byteSize()); count > 0; count = call(0,
            descriptor, bytes.address(), bytes.byteSize())) {
            map.append(new String(bytes.asSlice(0, count).toArray(ValueLayout.JAVA_BYTE),
                java.nio.charset.StandardCharsets.US_ASCII));
        }
        for (String line : map.toString().split("\n")) {
            String[] ends = line.substring(0, line.indexOf(' ')).split("-");
            if (Long.compareUnsigned(bytes.address(), Long.parseUnsignedLong(ends[0], 16)) >= 0
                && Long.compareUnsigned(bytes.address(), Long.parseUnsignedLong(ends[1], 16)) < 0) {
                return 1;
            }
        }
        return 0;
    }

    /** Waits for more than a second. The watcher then counts from 0 again. */
    private static long pause() {
        try {
            Thread.sleep(1100);
            return 0;
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** The first byte of a file, after it was set to 7 or not. */
    private static long firstByte(MemorySegment path, int flags, boolean isWritten) {
        long descriptor = call(257, -100, path.address(), flags);
        if (descriptor < 0) {
            return descriptor;
        }
        MemorySegment bytes = Arena.global().allocate(1);
        bytes.set(ValueLayout.JAVA_BYTE, 0, (byte) 7);
        long result = isWritten ? call(18, descriptor, bytes.address(), 1) // pwrite64, pread64
            : call(17, descriptor, bytes.fill((byte) 0).address(), 1);
        return result < 0 ? result : bytes.get(ValueLayout.JAVA_BYTE, 0);
    }

    /** Installs the filter and makes the calls. */
    public static void main(String[] args) throws IOException {
        MemorySegment steps = Arena.global().allocate(8L * PROGRAM.length, 8);
        for (int i = 0; i < PROGRAM.length; i++) {
            steps.set(ValueLayout.JAVA_SHORT, 8L * i, (short) PROGRAM[i][0]);
            steps.set(ValueLayout.JAVA_BYTE, 8L * i + 2, (byte) PROGRAM[i][1]);
            steps.set(ValueLayout.JAVA_BYTE, 8L * i + 3, (byte) PROGRAM[i][2]);
            steps.set(ValueLayout.JAVA_INT, 8L * i + 4, (int) PROGRAM[i][3]);
        }
        MemorySegment header = Arena.global().allocate(16, 8);
        header.set(ValueLayout.JAVA_SHORT, 0, (short) PROGRAM.length);
        header.set(ValueLayout.ADDRESS, 8, steps);
        System.out.println("begins " + call(39, 0, 0, 0)); // getpid: loads all classes before the filter applies
        call(157, 38, 1, 0); // PR_SET_NO_NEW_PRIVS
        System.out.println("listener " + call(317, 1, 8, header.address())); // SECCOMP_FILTER_FLAG_NEW_LISTENER
        if (System.in.read() < 0) {
            return;
        }
        for (String argument : args) {
            long result;
            if ("socket".equals(argument)) {
                result = call(41, 1, 1, 0);
            } else if ("pause".equals(argument)) {
                result = pause();
            } else {
                int colon = argument.indexOf(':');
                MemorySegment path = Arena.global().allocateFrom(argument.substring(colon + 1));
                String act = argument.substring(0, colon);
                result = switch (act) {
                    case "stat" -> describe(path, false, false);
                    case "oldstat" -> describe(path, true, false);
                    case "number" -> device(path);
                    case "maps" -> findsItself(path);
                    case "access" -> call(21, path.address(), 0, 0);
                    case "symlink" -> call(88, Arena.global().allocateFrom("/dev/null").address(), path.address(), 0);
                    case "size" -> describe(path, true, true);
                    case "mkdir" -> call(83, path.address(), 0700, 0);
                    case "unlink" -> call(87, path.address(), 0, 0);
                    case "unlinkat" -> call(263, -100, path.address(), 0);
                    case "rmdir" -> call(263, -100, path.address(), 0x200); // AT_REMOVEDIR
                    case "write" -> firstByte(path, 0102, true); // O_CREAT | O_RDWR
                    case "read" -> firstByte(path, 02, false);
                    case "put" -> firstByte(path, 01101, true); // O_CREAT | O_TRUNC | O_WRONLY
                    case "get" -> firstByte(path, 0, false);
                    default -> call(257, -100, path.address(), Integer.parseInt(act, 8));
                };
            }
            System.out.println(argument + ' ' + result);
        }
        Runtime.getRuntime().halt(0);
    }
}
