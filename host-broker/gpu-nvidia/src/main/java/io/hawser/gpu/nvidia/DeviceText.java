package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.NativeLibrary;
import io.hawser.cuda.generated.CudaNative;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.function.Consumer;

/**
 * The output of kernels. When a call synchronises, the driver writes it to this process's standard output. So standard
 * output is a memory file here, which is read after such a call. A worker has one session, so the file never holds
 * another session's text.
 */
final class DeviceText {
    private static final Logger LOG = System.getLogger(DeviceText.class.getName());
    private static final Linker LINKER = Linker.nativeLinker();
    private static final int STDOUT = 1;
    private static final int MFD_CLOEXEC = 1; // Linux memfd.h
    private static final int F_SETFL = 4; // Linux fcntl.h
    // Linux fcntl.h: after the file was truncated, writing continues at its start
    private static final int O_APPEND = 0x400;
    private static final int O_RDWR = 2;
    private static final int PIECE_BYTES = 64 << 10;

    private static final MethodHandle MEMFD_CREATE = libc("memfd_create", ValueLayout.JAVA_INT, ValueLayout.ADDRESS,
        ValueLayout.JAVA_INT);
    private static final MethodHandle DUP2 = libc("dup2", ValueLayout.JAVA_INT, ValueLayout.JAVA_INT,
        ValueLayout.JAVA_INT);
    private static final MethodHandle FFLUSH = libc("fflush", ValueLayout.JAVA_INT, ValueLayout.ADDRESS);
    private static final MethodHandle PREAD = libc("pread", ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT,
        ValueLayout.ADDRESS, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG);
    private static final MethodHandle FTRUNCATE = libc("ftruncate", ValueLayout.JAVA_INT, ValueLayout.JAVA_INT,
        ValueLayout.JAVA_LONG);
    private static final MethodHandle FCNTL = LINKER.downcallHandle(LINKER.defaultLookup().find("fcntl").orElseThrow(),
        FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT),
        Linker.Option.firstVariadicArg(2));

    private final MemorySegment piece = Arena.global().allocate(PIECE_BYTES);
    private final int file;
    private volatile Consumer<byte[]> sink = bytes -> LOG.log(Level.DEBUG, "a kernel printed {0} bytes", bytes.length);
    private volatile boolean inUse;

    DeviceText() {
        try (Arena arena = Arena.ofConfined()) {
            file = (int) MEMFD_CREATE.invokeExact(arena.allocateFrom("device-text"), MFD_CLOEXEC);
            if (file < 0 || (int) FCNTL.invokeExact(file, F_SETFL, O_APPEND | O_RDWR) != 0
                || (int) DUP2.invokeExact(file, STDOUT) < 0) {
                throw new IllegalStateException("kernel output needs a memory file as standard output");
            }
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    private static MethodHandle libc(String name, MemoryLayout result, MemoryLayout... parameters) {
        return LINKER.downcallHandle(LINKER.defaultLookup().find(name).orElseThrow(),
            FunctionDescriptor.of(result, parameters));
    }

    void sink(Consumer<byte[]> to) {
        sink = to;
    }

    /**
     * Starts to check for output, because kernels may print now. The check costs each synchronisation some
     * microseconds.
     */
    void enable() {
        inUse = true;
    }

    /** Forwards the output of the work before an event that has been reached. Any thread. */
    void flush(long event) {
        if (inUse) {
            forward(() -> CudaNative.cuEventSynchronize(event));
        }
    }

    /** Forwards the output of the work of an idle stream of the current context. Any thread. */
    void flushStream(long stream) {
        if (inUse) {
            forward(() -> CudaNative.cuStreamSynchronize(stream));
        }
    }

    private synchronized void forward(Runnable synchronise) {
        synchronise.run(); // CUDA documents that the driver prints at this call
        try {
            int flushed = (int) FFLUSH.invokeExact(MemorySegment.NULL);
            long at = 0;
            long count = (long) PREAD.invokeExact(file, piece, (long) PIECE_BYTES, at);
            while (count > 0) {
                sink.accept(piece.asSlice(0, count).toArray(ValueLayout.JAVA_BYTE));
                at += count;
                count = (long) PREAD.invokeExact(file, piece, (long) PIECE_BYTES, at);
            }
            if (at > 0 && (flushed != 0 || (int) FTRUNCATE.invokeExact(file, 0L) != 0)) {
                LOG.log(Level.WARNING, "kernel output could not be read completely");
            }
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }
}
