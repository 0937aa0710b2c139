package io.hawser.broker.turns;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RecordingFileTest {
    @TempDir
    private Path folder;

    private static void write(RecordingFile recording, String line) {
        byte[] bytes = line.getBytes(StandardCharsets.US_ASCII);
        recording.accept(bytes, bytes.length);
    }

    @Test
    void shouldReplaceAnEarlierFileByOneThatOnlyItsOwnerReads() throws IOException {
        Path path = folder.resolve("turns");
        Files.writeString(path, "earlier");
        Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-r--r--"));
        try (RecordingFile recording = RecordingFile.open(path, 1000)) {
            write(recording, "one\n");
            recording.accept(new byte[] {'t', 'w', 'o', '\n', 'x'}, 4);
        }
        assertEquals("one\ntwo\n", Files.readString(path));
        assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(path)));
    }

    @Test
    void shouldEndWithAWholeLineAtItsLimit() throws IOException {
        Path path = folder.resolve("turns");
        try (RecordingFile recording = RecordingFile.open(path, 10)) {
            write(recording, "four\n");
            write(recording, "fourt\n");
            write(recording, "a\n"); // would fit, but a line before it is missing
        }
        assertEquals("four\n", Files.readString(path));
    }

    @Test
    void shouldWriteMoreThanItsBuffer() throws Exception {
        Path path = folder.resolve("turns");
        String line = "x".repeat(99) + "\n";
        try (RecordingFile recording = RecordingFile.open(path, 100_000_000)) {
            for (int i = 1; i <= 30_000; i++) {
                write(recording, line);
                while (Files.size(path) < 100L * i - 700_000) {
                    Thread.sleep(1); // until the thread has emptied the buffer, of which more than half is full
                }
            }
        }
        assertEquals(3_000_000, Files.size(path));
    }
}
