package io.hawser.worker.memory;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Tells how much memory the host can still give without ending processes, as Linux estimates it. It opens a file of
 * /proc, which a worker in its jail cannot do. Any thread.
 */
public final class AvailableMemory implements AutoCloseable {
    private static final Path MEMORY = Path.of("/proc/meminfo");
    private static final Pattern AVAILABLE = Pattern.compile("^MemAvailable: +([0-9]+) kB$", Pattern.MULTILINE);
    private static final int MOST_BYTES = 8192; // of the file

    private final FileChannel file;

    private AvailableMemory(FileChannel file) {
        this.file = file;
    }

    /** Opens the host's figures. */
    public static AvailableMemory open() throws IOException {
        return open(MEMORY);
    }

    static AvailableMemory open(Path path) throws IOException {
        return new AvailableMemory(FileChannel.open(path, StandardOpenOption.READ));
    }

    /**
     * The memory that programs can get now.
     *
     * @return bytes.
     * @throws IOException if the system does not tell.
     */
    public long bytes() throws IOException {
        ByteBuffer content = ByteBuffer.allocate(MOST_BYTES);
        while (content.hasRemaining() && file.read(content, content.position()) > 0) {
            // A read may return a part.
        }
        Matcher line = AVAILABLE.matcher(new String(content.array(), 0, content.position(), StandardCharsets.US_ASCII));
        if (!line.find()) {
            throw new IOException("the system must tell its available memory: " + MEMORY + " has no MemAvailable");
        }
        return Long.parseLong(line.group(1)) << 10;
    }

    @Override
    public void close() throws IOException {
        file.close();
    }
}
