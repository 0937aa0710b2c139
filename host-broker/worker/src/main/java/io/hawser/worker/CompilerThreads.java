package io.hawser.worker;

import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;

/**
 * The threads in which the JVM compiles methods. A worker compiles for about three seconds of processor time after its
 * first calls, by several threads. Where many sessions begin together, these threads would delay every session on the
 * machine, so they run at a lower priority.
 */
final class CompilerThreads {
    /** Gives a thread about a tenth of the weight of others: it waits for sessions, but still makes progress. */
    static final int NICE = 10;

    private static final Logger LOG = System.getLogger(CompilerThreads.class.getName());
    private static final int PRIO_PROCESS = 0; // Linux sys/resource.h; of one thread, where the id is a thread's
    private static final Path THREADS = Path.of("/proc/self/task");

    private CompilerThreads() {}

    /**
     * Lowers the priority of all compiler threads. These threads start all later ones, which inherit the priority.
     * Needs the system call setpriority, which the jail does not allow.
     */
    static void lowerPriority() {
        Linker linker = Linker.nativeLinker();
        MethodHandle setPriority = linker.downcallHandle(linker.defaultLookup().findOrThrow("setpriority"),
            FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT,
                ValueLayout.JAVA_INT));
        try (DirectoryStream<Path> threads = Files.newDirectoryStream(THREADS)) {
            for (Path thread : threads) {
                if (isCompiler(thread)) {
                    lower(setPriority, Integer.parseInt(thread.getFileName().toString()));
                }
            }
        } catch (IOException e) {
            LOG.log(Level.WARNING, "compiler threads keep their priority: {0}", e.toString());
        }
    }

    private static void lower(MethodHandle setPriority, int thread) {
        int result;
        try {
            result = (int) setPriority.invokeExact(PRIO_PROCESS, thread, NICE);
        } catch (Throwable e) {
            throw new IllegalStateException("a function of the C library throws nothing", e);
        }
        if (result != 0) { // a compiler thread without work may have ended
            LOG.log(Level.DEBUG, "a compiler thread keeps its priority: thread={0}", thread);
        }
    }

    /** Whether a folder of /proc/self/task is of a compiler thread: C1 CompilerThread0, C2 CompilerThread0, ... */
    static boolean isCompiler(Path thread) throws IOException {
        try {
            return Files.readString(thread.resolve("comm")).matches("C[12] CompilerThre.*\\n");
        } catch (NoSuchFileException e) {
            return false; // it has ended meanwhile
        }
    }
}
