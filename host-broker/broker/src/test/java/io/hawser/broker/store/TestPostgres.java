package io.hawser.broker.store;

import io.hawser.broker.TestBroker;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** A PostgreSQL server of a test's own, from Debian's package or another installation in the path. */
public final class TestPostgres implements AutoCloseable {
    private static final String PASSWORD = "a secret of the test";
    private static final String USER = "hawser";
    private static final int PORT_TRIES = 100;
    private static final int FIRST_PORT = 20_000;
    private static final int FIRST_EPHEMERAL_PORT = 32_768; // Linux, net.ipv4.ip_local_port_range

    private final Path programs;
    private final Path folder;
    private final int port;
    private Process server;

    private TestPostgres(Path programs) throws IOException {
        this.programs = programs;
        folder = Files.createTempDirectory("hawser-postgres");
        port = freePort();
    }

    /**
     * Finds a port outside the kernel's ephemeral range. While the server is stopped, its port is free. If the kernel
     * gave this port to a broker that connects to the server, the broker would connect to itself.
     */
    private static int freePort() throws IOException {
        BindException taken = null;
        for (int i = 0; i < PORT_TRIES; i++) {
            int port = ThreadLocalRandom.current().nextInt(FIRST_PORT, FIRST_EPHEMERAL_PORT);
            try (ServerSocket free = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
                return free.getLocalPort();
            } catch (BindException e) {
                taken = e;
            }
        }
        throw taken;
    }

    /** The folder of initdb and postgres; empty when they are not installed. */
    public static Optional<Path> programs() throws IOException {
        List<Path> folders = new ArrayList<>();
        Stream.of(System.getenv("PATH").split(":")).map(Path::of).forEach(folders::add);
        Path debian = Path.of("/usr/lib/postgresql");
        if (Files.isDirectory(debian)) {
            try (Stream<Path> versions = Files.list(debian)) {
                versions.map(version -> version.resolve("bin")).forEach(folders::add);
            }
        }
        return folders.stream().filter(f -> Files.isExecutable(f.resolve("initdb"))
            && Files.isExecutable(f.resolve("postgres"))).findFirst();
    }

    /** Starts a server with an empty database, which requires the password. */
    public static TestPostgres start(Path programs) throws IOException, InterruptedException {
        TestPostgres made = new TestPostgres(programs);
        Path password = Files.writeString(made.folder.resolve("password"), PASSWORD + "\n");
        made.run("chown", "-R", asRoot() ? "nobody" : System.getProperty("user.name"), made.folder.toString());
        made.await(made.unprivileged("initdb", "-D", made.data(), "-U", USER, "--auth=scram-sha-256",
            "--pwfile=" + password, "--no-sync", "-E", "UTF8"), "initdb");
        made.startServer();
        return made;
    }

    private static boolean asRoot() {
        return System.getProperty("user.name").equals("root");
    }

    private String data() {
        return folder.resolve("data").toString();
    }

    /** Starts a program as an unprivileged user, since PostgreSQL refuses to run as root. */
    private Process unprivileged(String program, String... arguments) throws IOException {
        List<String> command = new ArrayList<>();
        if (asRoot()) {
            command.addAll(List.of("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"));
        }
        command.add(programs.resolve(program).toString());
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command).directory(folder.toFile()).redirectErrorStream(true)
            .redirectOutput(folder.resolve(program + ".log").toFile()).start();
    }

    private void run(String... command) throws IOException, InterruptedException {
        await(new ProcessBuilder(command).inheritIO().start(), command[0]);
    }

    private void await(Process process, String what) throws IOException, InterruptedException {
        if (!process.waitFor(120, TimeUnit.SECONDS) || process.exitValue() != 0) {
            process.destroyForcibly();
            Path log = folder.resolve(what + ".log");
            throw new IOException(what + " failed: " + (Files.exists(log) ? Files.readString(log) : ""));
        }
    }

    /** Starts the server, also after {@link #kill}. */
    public void startServer() throws IOException {
        server = unprivileged("postgres", "-D", data(), "-c", "listen_addresses=127.0.0.1", "-c", "port=" + port, "-c",
            "unix_socket_directories=" + folder, "-c", "max_connections=60", "-c", "shared_buffers=16MB");
        TestBroker.await("the server", () -> {
            try {
                String said = Files.readString(folder.resolve("postgres.log"));
                if (!server.isAlive()) {
                    throw new AssertionError("PostgreSQL has ended: " + said);
                }
                return said.contains("ready to accept connections");
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        });
    }

    /** Kills the server, as the loss of its machine would. */
    public void kill() throws InterruptedException {
        // The server's children end by themselves after the server.
        List<ProcessHandle> all = new ArrayList<>(server.descendants().toList());
        server.destroyForcibly().waitFor();
        all.forEach(process -> process.onExit().orTimeout(60, TimeUnit.SECONDS).join());
    }

    /** Settings of a broker that uses this server. */
    public Map<String, String> settings() {
        return Map.of("hawser.database.url", "jdbc:postgresql://127.0.0.1:" + port + "/postgres",
            "hawser.database.username", USER, "hawser.database.password", PASSWORD);
    }

    /** A connection of the test's own. */
    public Connection connect() throws SQLException {
        return DriverManager.getConnection(settings().get("hawser.database.url"), USER, PASSWORD);
    }

    @Override
    public void close() throws IOException {
        server.destroy();
        try {
            if (!server.waitFor(30, TimeUnit.SECONDS)) {
                server.destroyForcibly();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        Files.walkFileTree(folder, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
                Files.delete(file);
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult postVisitDirectory(Path directory, IOException failure) throws IOException {
                Files.delete(directory);
                return FileVisitResult.CONTINUE;
            }
        });
    }
}
