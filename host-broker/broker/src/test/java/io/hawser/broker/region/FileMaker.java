package io.hawser.broker.region;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/** Makes a file that a broker must neither open, change nor remove. */
@FunctionalInterface
interface FileMaker {
    /** Makes the file. */
    void make(Path path) throws IOException;

    /** Whether the tests run as root, as in containers. Only root can make device nodes and other users' files. */
    static boolean isRoot() throws IOException {
        return Files.getAttribute(Path.of("/proc/self"), "unix:uid").equals(0);
    }

    /** A maker for each kind of file that this user can make. */
    static Map<String, FileMaker> all() throws IOException {
        Map<String, FileMaker> all = new LinkedHashMap<>();
        all.put("file", path -> Files.writeString(path, "precious"));
        all.put("link", path -> Files.createSymbolicLink(path, Path.of("nowhere")));
        all.put("FIFO", path -> run("mkfifo", "-m", "600", path.toString()));
        all.put("folder", Files::createDirectory);
        all.put("socket of another program, which has ended", path -> {
            try (ServerSocketChannel left = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
                left.bind(UnixDomainSocketAddress.of(path));
            }
        });
        if (isRoot()) {
            all.put("device node", path -> run("mknod", "-m", "600", path.toString(), "c", "1", "3"));
        }
        return all;
    }

    /** The parts of a file's status that change with the file, its content or its rights. */
    static Object identity(Path path) throws IOException {
        return Map.copyOf(Files.readAttributes(path, "unix:dev,ino,mode,uid,nlink,lastModifiedTime",
            LinkOption.NOFOLLOW_LINKS));
    }

    private static void run(String... command) throws IOException {
        try {
            Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
            String output = new String(process.getInputStream().readAllBytes());
            if (process.waitFor() != 0) {
                throw new IOException(String.join(" ", command) + ": " + output);
            }
        } catch (InterruptedException e) {
            throw new IOException(e);
        }
    }
}
