package io.hawser.hypervisor;

import io.hawser.client.ApiClient;
import io.hawser.client.ClientException;
import io.hawser.client.Item;
import io.hawser.client.Settings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/** The packaged broker as a process, with the software GPU, its own state folder and ports that the kernel chooses. */
final class RealBroker implements AutoCloseable {
    private static final Path ROOT = Path.of(System.getProperty("hawser.root"));
    private static final Path LAUNCHER = ROOT.resolve("host-broker/broker/src/main/sh/hawser-broker");
    private static final long START_LIMIT_NS = TimeUnit.SECONDS.toNanos(Bench.LIMIT_S);

    private final Path stateDir;
    private Process process;

    RealBroker(Path stateDir) throws IOException, InterruptedException {
        this.stateDir = stateDir;
        start();
    }

    Path stateDir() {
        return stateDir;
    }

    /** Starts the broker, and waits until it knows its GPUs. */
    void start() throws IOException, InterruptedException {
        Path log = Files.createDirectories(Path.of("target/it")).resolve("broker.log");
        List<String> command = List.of(LAUNCHER.toString(), "-Dhawser.listen.port=0", "-Dhawser.http.port=0",
            "-Dhawser.state-dir=" + stateDir, "-Dhawser.gpu.backend=software", "-Dhawser.worker.pool-size=1",
            "-Dhawser.worker.start-timeout=600s");
        Files.deleteIfExists(stateDir.resolve("endpoints.json")); // left over from a killed broker
        process = new ProcessBuilder(command).redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile())).start();
        long end = System.nanoTime() + START_LIMIT_NS;
        while (!knowsGpus()) {
            if (!process.isAlive() || System.nanoTime() - end > 0) {
                throw new AssertionError("the broker does not start: see " + log.toAbsolutePath());
            }
            TimeUnit.MILLISECONDS.sleep(50);
        }
    }

    private boolean knowsGpus() {
        try {
            return Files.exists(stateDir.resolve("endpoints.json"))
                && !ask(c -> Item.list(c.get("/api/v1/gpus"))).isEmpty();
        } catch (ClientException e) {
            return false;
        }
    }

    /** Sends a request as administrator. */
    <T> T ask(Function<ApiClient, T> question) {
        Settings settings = new Settings(Map.of("state-dir", stateDir.toString()), Map.of(), Path.of("/nonexistent"),
            null);
        try (ApiClient client = new ApiClient(settings.endpoint())) {
            return question.apply(client);
        }
    }

    /** Kills the broker; its workers then end by themselves. */
    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    @Override
    public void close() {
        process.destroy();
        try {
            if (!process.waitFor(60, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
