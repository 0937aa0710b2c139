package io.hawser.simulator.replay;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.turns.TurnPage;
import io.hawser.simulator.engine.Costs;
import io.hawser.simulator.engine.Simulation;
import io.hawser.simulator.engine.Tenant;
import io.hawser.simulator.load.GeneratedRun;
import io.hawser.simulator.load.Load;
import io.hawser.simulator.load.Placement;
import io.hawser.simulator.report.TenantResult;
import io.hawser.turns.RecordingEncoder;
import io.hawser.turns.RecordingException;
import io.hawser.turns.Seat;
import io.hawser.turns.TurnGroups;
import io.hawser.turns.TurnRules;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReplayTest {
    private static final long MS = 1_000_000;
    private static final TurnRules RULES = new TurnRules(4 * MS, 20 * MS, 100_000);

    @TempDir
    private Path folder;

    /** Records a run in which a weight changes, and the driver gets the equal vGPUs at last, or neither. */
    private static byte[] record(long seed, long lengthNs, boolean hasChanges, String... loads) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        Simulation simulation = new Simulation(RULES, new Costs(100_000, 50_000, 200_000), 3,
            new RecordingEncoder((line, length) -> out.write(line, 0, length), RULES, 0));
        new GeneratedRun(simulation, 3, Placement.roundRobin(), Load.parse(List.of(loads)), seed);
        if (hasChanges) {
            simulation.at(50 * MS, () -> simulation.setWeight("flight-1", 250));
            simulation.at(lengthNs / 2, simulation::leaveEqual);
            simulation.at(lengthNs / 2 + MS, () -> simulation.setWeight("flight-1", 100));
        }
        simulation.run(lengthNs);
        return out.toByteArray();
    }

    private static byte[] busy(long seed) {
        return record(seed, 600 * MS, true, "3xflight", "4xwait", "long:kernel=30ms", "burst:weight=300,until=400ms",
            "wait:gpus=2,from=100ms,until=250ms", "2xidle", "3xburst:from=150ms,gpus=2,pause=1ms,until=200ms");
    }

    private Replay replay(byte[] recording) throws IOException, RecordingException {
        Path file = folder.resolve("recording");
        Files.write(file, recording);
        return Replay.of(file);
    }

    private Replay replay(String recording) throws IOException, RecordingException {
        return replay(recording.getBytes(StandardCharsets.US_ASCII));
    }

    @Test
    void shouldRepeatAllDecisions() throws Exception {
        for (int seed = 0; seed < 5; seed++) {
            byte[] recording = busy(seed);
            Replay replay = replay(recording);
            assertNull(replay.difference());
            String text = new String(recording, StandardCharsets.US_ASCII);
            assertEquals(text.lines().filter(line -> line.startsWith("permit ")).count(), replay.decisions());
            assertTrue(replay.decisions() > 500, "decisions=" + replay.decisions());
        }
    }

    private static final class RandomSeat implements Seat {
        private int state = TurnPage.IDLE;
        private int permit;

        @Override
        public int state() {
            return state;
        }

        @Override
        public void setPermit(int sent) {
            permit = sent;
        }
    }

    /** A recording needs no line for a poll that finds nothing new, however often the thread polls. */
    @Test
    void shouldRepeatDecisionsOfAThreadThatPolls() throws Exception {
        Random random = new Random(1);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        TurnGroups groups = new TurnGroups(RULES, () -> false,
            new RecordingEncoder((line, length) -> out.write(line, 0, length), RULES, 0));
        List<RandomSeat> seats = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            seats.add(new RandomSeat());
            groups.join(seats.get(i), "vgpu" + i, 50 + 50 * i, List.of("gpu-" + i % 2), 1);
        }
        int polls = 200_000;
        long nowNs = 1;
        for (int i = 0; i < polls; i++) {
            nowNs += random.nextInt(5000);
            if (random.nextInt(100) == 0) {
                RandomSeat seat = seats.get(random.nextInt(seats.size()));
                seat.state = TurnPage.isWait(seat.permit) ? random.nextInt(2) : random.nextInt(3);
            }
            groups.poll(nowNs);
        }
        Replay replay = replay(out.toByteArray());
        assertNull(replay.difference());
        assertTrue(replay.decisions() > 500, "decisions=" + replay.decisions());
        assertTrue(replay.looks() < polls / 10, "looks=" + replay.looks());
    }

    @Test
    void shouldNameTheFirstDifferentPermit() throws Exception {
        String[] lines = new String(busy(1), StandardCharsets.US_ASCII).split("(?<=\n)");
        int at = lines.length / 2;
        while (!lines[at].matches("permit [0-9]+ turn\n")) {
            at++;
        }
        lines[at] = lines[at].replace("turn", "open");
        assertEquals("line " + (at + 1) + ": replayed: " + lines[at].strip().replace("open", "turn") + "; recorded: "
            + lines[at].strip(), replay(String.join("", lines)).difference());
        lines[at] = "";
        String missing = replay(String.join("", lines)).difference();
        assertTrue(missing.startsWith("line " + (at + 1) + ": replayed: permit "), missing);
    }

    @Test
    void shouldFindADifferenceUnderOtherRules() throws Exception {
        String recording = new String(busy(1), StandardCharsets.US_ASCII);
        String rules = "rules 4000000 20000000 100000 8 4 8\n";
        assertTrue(recording.contains(rules));
        for (String other : List.of("rules 4000001 20000000 100000 8 4 8\n", "rules 4000000 10000000 100000 8 4 8\n",
            "rules 4000000 20000000 0 8 4 8\n", "rules 4000000 20000000 100000 8 2 8\n")) {
            assertTrue(replay(recording.replace(rules, other)).difference() != null, other);
        }
    }

    @Test
    void shouldReplayARecordingThatEndsAnywhere() throws Exception {
        byte[] recording = busy(2);
        Random random = new Random(1);
        for (int i = 0; i < 50; i++) {
            byte[] part = Arrays.copyOf(recording, 60 + random.nextInt(recording.length - 60));
            assertNull(replay(part).difference(), "bytes=" + part.length);
        }
    }

    /** Damage gives an error of the text, a difference, or a plain replay, and nothing else. */
    @Test
    void shouldEndInOrderWithADamagedRecording() throws Exception {
        String recording = new String(busy(3), 0, 20_000, StandardCharsets.US_ASCII);
        List<String> lines = List.of(recording.split("(?<=\n)"));
        int errors = 0;
        int differences = 0;
        for (int seed = 0; seed < 500; seed++) {
            Random random = new Random(seed);
            List<String> damaged = new ArrayList<>(lines);
            for (int i = random.nextInt(3); i >= 0; i--) {
                int at = random.nextInt(damaged.size());
                String other = lines.get(random.nextInt(lines.size()));
                switch (random.nextInt(4)) {
                    case 0 -> damaged.remove(at);
                    case 1 -> damaged.set(at, other);
                    case 2 -> damaged.add(at, other);
                    default -> damaged.set(at, damaged.get(at).replace('1', (char) ('0' + random.nextInt(12))));
                }
            }
            try {
                differences += replay(String.join("", damaged)).difference() == null ? 0 : 1;
            } catch (RecordingException e) {
                errors++;
            }
        }
        assertTrue(errors > 50 && differences > 50, "errors=" + errors + " differences=" + differences);
    }

    @Test
    void shouldCountTheRecordedWork() throws Exception {
        Replay replay = replay(record(1, 2000 * MS, false, "4xflight", "2xidle"));
        // The scheduler reads states only where it has to give turns: on the first GPU, which has two busy sessions.
        assertEquals(3, replay.gpus());
        assertEquals(1, replay.results().usedPart() * 3, 0.05, replay.results().table(true));
    }

    /** With the recorded rules, the recorded demands must give about the recorded result. */
    @Test
    void shouldSimulateTheRecordedDemands() throws Exception {
        Replay replay = replay(record(1, 2000 * MS, false, "6xwait:weight=50,until=1500ms", "3xburst",
            "3xflight:weight=200"));
        Simulation simulation = new Simulation(RULES, Costs.NONE, replay.gpus(), null);
        WhatIf whatIf = new WhatIf(replay, simulation);
        simulation.run(replay.lengthNs());
        List<TenantResult> recorded = replay.results().tenants();
        assertEquals(recorded.size(), whatIf.tenants().size());
        for (int i = 0; i < recorded.size(); i++) {
            Tenant tenant = whatIf.tenants().get(i);
            assertEquals(recorded.get(i).vgpu(), tenant.vgpu());
            assertEquals(1, tenant.ranNs() / recorded.get(i).ranNs(), 0.1, tenant.vgpu());
        }
    }
}
