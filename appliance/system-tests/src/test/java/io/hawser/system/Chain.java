package io.hawser.system;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** The places of all parts in the build. */
final class Chain {
    static final Path ROOT = Path.of(System.getProperty("hawser.root", "../..")).toAbsolutePath().normalize();
    /** Programs that tests start for other purposes; they do not check a result by themselves. */
    private static final List<String> HELPERS = List.of("hold", "churn", "stranger", "tenant", "random_calls",
        "static_stripped", "hawser_benchmark");

    /** Starts the packaged broker as a user does, on the runtime and with the caches of the build. */
    static final Path LAUNCHER = ROOT.resolve("host-broker/broker/src/main/sh/hawser-broker");
    static final Path LIBRARIES = ROOT.resolve("guest-agent/interposer/target/lib");
    /** The worker's end of RDMA. */
    static final Path RDMA = ROOT.resolve("guest-agent/interposer/target/worker/libhws_rdma.so");
    /** The worker's jars. */
    static final Path WORKER = ROOT.resolve("host-broker/worker/target/app");
    /** A device of libibverbs for tests. */
    static final Path VERBS = ROOT.resolve("guest-agent/interposer/target/cmake/transport/libibverbs_test.so");
    /** The guest's command. */
    static final Path COMMAND = ROOT.resolve("guest-agent/interposer/target/bin/hawser");
    static final Path PROGRAMS = ROOT.resolve("appliance/programs/target/bin");
    /** The programs of nvcc once more, with the static CUDA runtime. */
    static final Path STATIC_PROGRAMS = PROGRAMS.resolve("static");
    /** Output of all processes of a run, kept for diagnosis. */
    static final Path OUTPUT = ROOT.resolve("appliance/system-tests/target/processes");

    private Chain() {
    }

    /** Names of the driver programs; every build has them. */
    static List<String> driverPrograms() {
        return programs(PROGRAMS).stream().filter(name -> name.startsWith("drv_")).toList();
    }

    /** Names of the programs that nvcc built; empty without nvcc. */
    static List<String> cudaPrograms() {
        return programs(PROGRAMS).stream().filter(name -> !name.startsWith("drv_")).toList();
    }

    private static List<String> programs(Path folder) {
        try (Stream<Path> files = Files.list(folder)) {
            return files.filter(Files::isRegularFile).filter(Files::isExecutable)
                .map(file -> file.getFileName().toString()).filter(name -> !HELPERS.contains(name)).sorted().toList();
        } catch (IOException e) {
            throw new UncheckedIOException("the programs are not built: " + folder, e);
        }
    }
}
