package io.hawser.poolsimulator;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** A PostgreSQL server of a test's own, as an unprivileged user. */
final class TestServer implements AutoCloseable {
    private final Path programs;
    private final Path folder;
    private final int port;

    private TestServer(Path programs, Path folder, int port) {
        this.programs = programs;
        this.folder = folder;
        this.port = port;
    }

    /** The folder of initdb and pg_ctl; empty when they are not installed. */
    static Optional<Path> programs() throws IOException {
        List<Path> folders = new ArrayList<>();
        Path debian = Path.of("/usr/lib/postgresql");
        if (Files.isDirectory(debian)) {
            try (Stream<Path> versions = Files.list(debian)) {
                versions.map(version -> version.resolve("bin")).forEach(folders::add);
            }
        }
        Stream.of(System.getenv("PATH").split(":")).map(Path::of).forEach(folders::add);
        return folders.stream().filter(f -> Files.isExecutable(f.resolve("pg_ctl"))).findFirst();
    }

    /** Starts a server with an empty database, for the user {@code hawser} without a password. */
    static TestServer start(Path programs) throws IOException, InterruptedException {
        int port;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        Path folder = Files.createTempDirectory("hawser-postgres");
        TestServer server = new TestServer(programs, folder, port);
        if (isRoot()) {
            run(List.of("chown", "nobody", folder.toString()));
        }
        server.program("initdb", "-D", server.data(), "-U", "hawser", "--auth=trust", "--no-sync", "-E", "UTF8");
        server.program("pg_ctl", "-D", server.data(), "-w", "-t", "120", "-l", folder.resolve("log").toString(), "-o",
            "-c listen_addresses=127.0.0.1 -c port=" + port + " -c unix_socket_directories=" + folder, "start");
        return server;
    }

    private static boolean isRoot() {
        return System.getProperty("user.name").equals("root");
    }

    private String data() {
        return folder.resolve("data").toString();
    }

    /** PostgreSQL refuses to run as root. */
    private void program(String name, String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>();
        if (isRoot()) {
            command.addAll(List.of("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"));
        }
        command.add(programs.resolve(name).toString());
        command.addAll(List.of(arguments));
        run(command);
    }

    private static void run(List<String> command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command).redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD).directory(Path.of("/").toFile()).start();
        if (process.waitFor() != 0) {
            throw new IOException("failed: " + command);
        }
    }

    String url() {
        return "jdbc:postgresql://127.0.0.1:" + port + "/postgres";
    }

    @Override
    public void close() throws IOException, InterruptedException {
        program("pg_ctl", "-D", data(), "-w", "-m", "immediate", "stop");
        run(List.of("rm", "-r", folder.toString()));
    }
}
