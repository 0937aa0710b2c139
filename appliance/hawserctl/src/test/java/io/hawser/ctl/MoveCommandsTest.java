package io.hawser.ctl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.client.Item;
import io.hawser.client.Json;
import io.hawser.ctl.command.ExitCode;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Commands that move vGPUs, with a stand-in for the REST interface. */
class MoveCommandsTest {
    private static final Map<String, Object> MOVED = Map.of("vgpu", "a", "from", "u-0", "to", "u-1", "sessions", 2L,
        "ms", 1240L);

    private StandInBroker broker;
    private volatile Object answer = MOVED;

    @BeforeEach
    void start() throws IOException {
        broker = new StandInBroker(path -> answer);
    }

    @AfterEach
    void stop() {
        broker.close();
    }

    private String done(String line) {
        StandInBroker.Ended ended = broker.run(line);
        assertEquals(ExitCode.OK, ended.exitCode(), line + ": " + ended.err());
        assertEquals("", ended.err(), "nothing but errors without a terminal");
        return ended.out();
    }

    @Test
    void shouldMoveAVgpuAndASession() throws Exception {
        List<String> table = List.of("VGPU  FROM  TO   SESSIONS   TIME", "a     u-0   u-1         2  1.2 s");
        assertEquals(table, done("vgpus move a/b --gpu 1").lines().toList());
        assertEquals("POST /api/v1/vgpus/a%2Fb/move {\"gpu\":\"1\"}", broker.asked.take());
        assertEquals(table, done("sessions move 7 --gpu GPU-u-1").lines().toList());
        assertEquals("POST /api/v1/sessions/7/move {\"gpu\":\"GPU-u-1\"}", broker.asked.take());
        assertEquals(1240, Item.of(Json.read(done("vgpus move a --gpu 1 --json"))).number("ms"));
        assertEquals("u-1\t2", done("vgpus move a --gpu 1 --fields to,sessions").strip());
        broker.asked.clear();
        done("vgpus move a --broker gpu-host-2");
        assertEquals("POST /api/v1/vgpus/a/move {\"broker\":\"gpu-host-2\"}", broker.asked.take());
        done("sessions move 7 --broker gpu-host-2 --gpu 1");
        assertEquals("POST /api/v1/sessions/7/move {\"gpu\":\"1\",\"broker\":\"gpu-host-2\"}", broker.asked.take());
        assertEquals(ExitCode.USAGE, broker.run("vgpus move a").exitCode());
    }

    @Test
    void shouldReportTheReasonOfAFailedMove() {
        broker.status = 409;
        answer = Map.of("detail", "the vGPU has not moved: vgpu=a: the mover has ended");
        StandInBroker.Ended refused = broker.run("vgpus move a --gpu 1");
        assertEquals(ExitCode.REFUSED, refused.exitCode());
        assertEquals("hawserctl: refused: the vGPU has not moved: vgpu=a: the mover has ended", refused.err().strip());
        assertEquals("", refused.out());
        broker.status = 404;
        assertEquals(ExitCode.NOT_FOUND, broker.run("sessions move 1 --gpu 9").exitCode());
    }

    @Test
    void shouldDrainAGpuAndFailIfAVgpuStays() throws Exception {
        answer = Map.of("gpu", "u-0", "drained", true, "moved", List.of(MOVED), "stayed", List.of());
        assertEquals(List.of("VGPU  GPU  SESSIONS   TIME  STAYS BECAUSE", "a     u-1         2  1.2 s"),
            done("gpus drain 0").lines().toList());
        assertEquals("POST /api/v1/gpus/0/drain", broker.asked.take());
        answer = Map.of("gpu", "u-0", "drained", true, "moved", List.of(), "stayed", List.of(Map.of("vgpu", "b",
            "reason", "it names its GPU")));
        StandInBroker.Ended some = broker.run("gpus drain 0");
        assertEquals(ExitCode.REFUSED, some.exitCode());
        assertEquals(List.of("VGPU  GPU  SESSIONS  TIME  STAYS BECAUSE", "b     u-0                  it names its GPU"),
            some.out().lines().toList());
        assertEquals("hawserctl: the GPU gets no further vGPUs, but has some still: 1", some.err().strip());
        StandInBroker.Ended json = broker.run("gpus drain 0 --json");
        assertEquals(ExitCode.REFUSED, json.exitCode());
        assertEquals("b", Item.of(Json.read(json.out())).items("stayed").getFirst().text("vgpu"));
    }

    @Test
    void shouldDrainAndUndrainABroker() throws Exception {
        answer = Map.of("gpu", "", "broker", "left", "drained", true, "moved", List.of(MOVED), "stayed", List.of(
            Map.of("vgpu", "b", "reason", "it names its GPU")));
        StandInBroker.Ended some = broker.run("brokers drain left");
        assertEquals("POST /api/v1/brokers/left/drain", broker.asked.take());
        assertEquals(ExitCode.REFUSED, some.exitCode());
        assertEquals(3, some.out().lines().count(), some.out());
        assertEquals("hawserctl: the broker gets no further vGPUs, but has some still: 1", some.err().strip());
        answer = Map.of("gpu", "", "broker", "left", "drained", false, "moved", List.of(), "stayed", List.of());
        assertTrue(done("brokers undrain left").lines().anyMatch(line -> line.matches("drained +false")));
        assertEquals("POST /api/v1/brokers/left/undrain", broker.asked.take());
    }

    @Test
    void shouldRebalance() throws Exception {
        Map<String, Object> moved = Map.of("vgpu", "a", "state", "moved", "fromBroker", "left", "from", "u-0",
            "toBroker", "right", "to", "u-1", "sessions", 2L, "ms", 1240L, "reason", "");
        Map<String, Object> stayed = Map.of("vgpu", "b", "state", "stayed", "fromBroker", "", "from", "u-0", "toBroker",
            "", "to", "u-1", "sessions", 0L, "ms", 0L, "reason", "it has a region");
        answer = Map.of("dryRun", false, "steps", List.of(moved, stayed));
        assertEquals(List.of("VGPU  STATE   FROM      TO         SESSIONS   TIME  STAYS BECAUSE",
            "a     moved   left u-0  right u-1         2  1.2 s",
            "b     stayed  u-0       u-1                         it has a region"),
            done("vgpus rebalance").lines().toList());
        assertEquals("POST /api/v1/rebalance {\"dryRun\":false}", broker.asked.take());
        answer = Map.of("dryRun", true, "steps", List.of());
        assertEquals("no move would be an improvement", done("vgpus rebalance --dry-run --limit 3").lines().toList()
            .getLast());
        assertEquals("POST /api/v1/rebalance {\"dryRun\":true,\"limit\":3}", broker.asked.take());
        assertEquals(List.of(), Item.of(Json.read(done("vgpus rebalance --json"))).items("steps"));
    }

    @Test
    void shouldUndrainAGpuAndShowWhichIsDrained() throws Exception {
        answer = Map.of("gpu", "u-0", "drained", false, "moved", List.of(), "stayed", List.of());
        assertTrue(done("gpus undrain 0").lines().anyMatch(line -> line.matches("drained +false")));
        assertEquals("POST /api/v1/gpus/0/undrain", broker.asked.take());
        answer = List.of(Map.of("index", 0L, "health", "ok", "drained", true), Map.of("index", 1L, "health", "failing",
            "healthDetail", "no worker", "drained", false));
        List<String> lines = done("gpus").lines().toList();
        assertTrue(lines.get(1).endsWith("  ok, drained"), lines.get(1));
        assertTrue(lines.get(2).endsWith("  failing: no worker"), lines.get(2));
    }
}
