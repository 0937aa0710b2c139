package io.hawser.broker;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;

/** A disk of few bytes, in user and mount namespaces of its own: no root is needed. It is gone when this is closed. */
final class SmallDisk implements AutoCloseable {
    private final Process holder;
    private final Path folder;

    private SmallDisk(Process holder, Path folder) {
        this.holder = holder;
        this.folder = folder;
    }

    /**
     * Makes one at a folder that is there; nobody outside sees it there. Skips the test where users may have no
     * namespaces.
     */
    static SmallDisk at(Path folder, int kibibytes) throws IOException {
        // Ends with its standard input, which ends with the tests.
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

    /** What starts a command that sees the disk, in this process' working directory. */
    List<String> prefix() {
        return List.of("nsenter", "--preserve-credentials", "-U", "-m", "-t", Long.toString(holder.pid()), "sh", "-c",
            "cd \"$0\" && exec \"$@\"", Path.of("").toAbsolutePath().toString());
    }

    /** Where it is for those that see it. */
    Path folder() {
        return folder;
    }

    /** Its folder for processes that do not see it. */
    Path fromOutside() {
        return Path.of("/proc/" + holder.pid() + "/root" + folder);
    }

    /** Takes what is free to the last block, also what was given back since it was last filled. */
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

    /** Frees what was filled. */
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
