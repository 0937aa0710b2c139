package io.hawser.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Map;

/** A library, made of jumping_clock.c, with which a test sets the wall clock of a running process. */
final class JumpingClock {
    private final Path library;
    private final Path file;

    /** Compiles the library. The clock is right at first. */
    JumpingClock(Path folder) throws IOException, InterruptedException {
        library = folder.resolve("libjumping_clock.so");
        file = folder.resolve("ahead");
        Files.write(file, new byte[Long.BYTES]);
        Process gcc = new ProcessBuilder("gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o",
            library.toString(), "src/test/c/jumping_clock.c").redirectErrorStream(true).start();
        String output = new String(gcc.getInputStream().readAllBytes());
        assertEquals(0, gcc.waitFor(), output);
    }

    /** Environment variables that make a process use the clock. */
    Map<String, String> environment() {
        return Map.of("LD_PRELOAD", library.toString(), "HAWSER_JUMPING_CLOCK", file.toString());
    }

    /** Sets the clock ahead of the kernel's, or behind where the duration is negative. */
    void set(Duration ahead) throws IOException {
        ByteBuffer seconds = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.nativeOrder());
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.write(seconds.putLong(ahead.toSeconds()).flip(), 0);
        }
    }
}
