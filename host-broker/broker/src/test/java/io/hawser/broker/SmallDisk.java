package io.hawser.broker;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;

/** A small tmpfs that exists until close. Its own user and mount namespaces make it usable without root. */
final class SmallDisk implements AutoCloseable {
    private final Process holder;
    private final Path folder;

    private SmallDisk(Process holder, Path folder) {
        this.holder = holder;
        this.folder = folder;
    }

    /**
     * Mounts a disk on an existing folder, visible only inside the namespaces. Skips the test where users may not
     * create namespaces.
     */
    static SmallDisk at(Path folder, int kibibytes) throws IOException {
        // The process ends at the end of its standard input, and so with the tests.
        Process holder = new ProcessBuilder("unshare", "-Urm", "sh", "-c", "mount -t tmpfs -o size=" + kibibytes
            + "k,mode=0700 hawser-test \"$0\" && echo mounted && exec cat", folder.toString())
            .redirectErrorStream(true).start();
        BufferedReader said = holder.inputReader();
        String first = said.readLine();
        if (!"mounted".equals(first)) {
            holder.destroyForcibly();
        }
        assumeTrue("mounted".equals(first), "SKIPPED: this user may not have a user namespace with a tmpfs: " + first);
        return new SmallDisk(holder, folder);
    }

    /** Prefix that makes a command line run inside the namespaces, in this process' working directory. */
    List<String> prefix() {
        return List.of("nsenter", "--preserve-credentials", "-U", "-m", "-t", Long.toString(holder.pid()), "sh", "-c",
            "cd \"$0\" && exec \"$@\"", Path.of("").toAbsolutePath().toString());
    }

    /** The disk's folder for processes inside the namespaces. */
    Path folder() {
        return folder;
    }

    /** The disk's folder for processes outside the namespaces. */
    Path fromOutside() {
        return Path.of("/proc/" + holder.pid() + "/root" + folder);
    }

    /** Takes all free blocks, also those that have become free since the last call. */
    void fill() throws IOException {
        byte[] zeros = new byte[1 << 12];
        try (OutputStream filler = Files.newOutputStream(filler(), StandardOpenOption.CREATE,
            StandardOpenOption.APPEND)) {
            while (true) {
                filler.write(zeros);
            }
        } catch (IOException e) {
            if (!"No space left on device".equals(e.getMessage())) {
                throw e;
            }
        }
    }

    /** Frees the blocks that {@link #fill} has taken. */
    void free() throws IOException {
        Files.delete(filler());
    }

    private Path filler() {
        return fromOutside().resolve("filler");
    }

    @Override
    public void close() {
        holder.destroyForcibly();
    }
}
