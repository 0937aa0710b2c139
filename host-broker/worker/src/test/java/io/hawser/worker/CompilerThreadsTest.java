package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class CompilerThreadsTest {
    private static final int NICE_FIELD = 16; // in /proc/PID/stat, counted from 0 behind the name

    @Test
    void compilersAndNoOtherThreadsGetALowerPriority() throws IOException {
        int others = nice(Path.of("/proc/self")).orElseThrow();
        CompilerThreads.lowerPriority();
        List<Integer> compilers = new ArrayList<>();
        try (Stream<Path> threads = Files.list(Path.of("/proc/self/task"))) {
            for (Path thread : threads.toList()) {
                if (CompilerThreads.isCompiler(thread)) {
                    nice(thread).ifPresent(compilers::add);
                } else {
                    assertEquals(others, nice(thread).orElse(others), thread.toString());
                }
            }
        }
        assertFalse(compilers.isEmpty());
        compilers.forEach(nice -> assertEquals(CompilerThreads.NICE, nice));
    }

    /** Empty if the thread has ended. */
    private static Optional<Integer> nice(Path thread) throws IOException {
        try {
            String stat = Files.readString(thread.resolve("stat"));
            return Optional.of(Integer.parseInt(stat.substring(stat.lastIndexOf(')') + 2).split(" ")[NICE_FIELD]));
        } catch (NoSuchFileException e) {
            return Optional.empty();
        }
    }
}
