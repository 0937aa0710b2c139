package io.hawser.broker.stream;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.broker.TestBroker;
import io.hawser.broker.app.RunningBroker;
import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.events.Event;
import io.hawser.broker.history.HistoryLoad;
import io.hawser.broker.rest.FakeWorkers;
import io.hawser.broker.rest.HttpEndpoint;
import io.quarkus.test.common.QuarkusTestResource;
import io.quarkus.test.junit.QuarkusTest;
import io.quarkus.test.junit.QuarkusTestProfile;
import io.quarkus.test.junit.TestProfile;
import jakarta.inject.Inject;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/**
 * Measures the cost of the stream with 1,000 vGPUs and 200 busy sessions, all simulated. Only
 * {@code appliance/benchmark-stream} runs this class, which is no test. The clients are processes of their own (curl),
 * except the client that measures the latency.
 */
@QuarkusTest
@QuarkusTestResource(FakeWorkers.class)
@TestProfile(StreamBenchmark.Large.class)
class StreamBenchmark {
    private static final int SECONDS = 20;
    private static final int EVENTS = 200;

    /** Replaces the real broker's pictures by those of the large simulated broker. */
    public static class Large implements QuarkusTestProfile {
        @Override
        public Set<Class<?>> getEnabledAlternatives() {
            return Set.of(SimulatedPictures.class);
        }
    }

    @Inject
    RunningBroker running;
    @Inject
    HttpEndpoint http;
    @Inject
    BrokerConfig config;
    @Inject
    Watch watch;

    private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();

    @Test
    void measure() throws Exception {
        TestBroker.await("a worker", () -> running.parts().pools().state().ready() > 0);
        System.out.printf("vGPUs %d, sessions %d (all busy)%n", SimulatedPictures.VGPUS, SimulatedPictures.SESSIONS);
        cpu(0);
        for (int clients : new int[] {0, 1, 16, 60}) {
            List<Process> watchers = new ArrayList<>();
            try {
                for (int i = 0; i < clients; i++) {
                    watchers.add(new ProcessBuilder("curl", "-sN", "-H", "Authorization: Bearer " + token(),
                        http.url() + "/api/v1/stream").redirectOutput(ProcessBuilder.Redirect.DISCARD)
                        .start());
                }
                TestBroker.await("the connected clients", () -> watch.clients() == clients);
                System.out.printf("watching %2d: broker %.1f %% of a core%n", clients, cpu(SECONDS));
            } finally {
                watchers.forEach(Process::destroyForcibly);
            }
            TestBroker.await("the end of the clients", () -> watch.clients() == 0);
        }
        latency();
        System.out.printf("history of 200 busy vGPUs over a day: %.1f MiB%n", HistoryLoad.mebibytes(200));
        System.out.printf("history of 1000 busy vGPUs over a day (what is too much goes): %.1f MiB%n",
            HistoryLoad.mebibytes(1000));
    }

    private String token() throws IOException {
        return Files.readString(config.stateDir().resolve("admin.token")).strip();
    }

    /** Processor time of the watching thread and REST's threads over the given time, in percent of a core. */
    private double cpu(int seconds) throws InterruptedException {
        long before = cpuNs();
        long startNs = System.nanoTime();
        TimeUnit.SECONDS.sleep(seconds);
        return 100.0 * (cpuNs() - before) / Math.max(1, System.nanoTime() - startNs);
    }

    private long cpuNs() {
        long sum = 0;
        for (ThreadInfo thread : threads.getThreadInfo(threads.getAllThreadIds())) {
            if (thread != null && (thread.getThreadName().equals("hawser-watch")
                || thread.getThreadName().startsWith("vert.x-eventloop") || thread.getThreadName().startsWith(
                    "executor-thread"))) {
                sum += Math.max(0, threads.getThreadCpuTime(thread.getThreadId()));
            }
        }
        return sum;
    }

    /** Measures the time from an event to its arrival at a client, and the size of pictures and changes. */
    private void latency() throws Exception {
        HttpURLConnection connection = (HttpURLConnection) URI.create(http.url() + "/api/v1/stream")
            .toURL().openConnection();
        connection.setRequestProperty("Authorization", "Bearer " + token());
        assertEquals(200, connection.getResponseCode());
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(connection.getInputStream(),
            StandardCharsets.UTF_8))) {
            int picture = length(lines, "picture");
            int change = length(lines, "change");
            long[] us = new long[EVENTS];
            for (int i = 0; i < EVENTS; i++) {
                TimeUnit.MILLISECONDS.sleep(73); // out of step with the changes, and below the rate of a flood
                long sentNs = System.nanoTime();
                watch.events().add(Event.Kind.values()[i % 7], Event.Severity.INFO, "", 0, "probe " + i);
                String mark = "probe " + i + "\"";
                String line;
                do {
                    line = lines.readLine();
                } while (!line.contains(mark));
                us[i] = (System.nanoTime() - sentNs) / 1000;
            }
            Arrays.sort(us);
            System.out.printf("picture %d KiB, change %d KiB; event to client: median %d us, 99 %% %d us%n",
                picture / 1024, change / 1024, us[EVENTS / 2], us[EVENTS * 99 / 100]);
        } finally {
            connection.disconnect();
        }
    }

    private static int length(BufferedReader lines, String name) throws IOException {
        String line;
        do {
            line = lines.readLine();
        } while (!line.equals("event:" + name) && !line.equals("event: " + name));
        return lines.readLine().length();
    }
}
