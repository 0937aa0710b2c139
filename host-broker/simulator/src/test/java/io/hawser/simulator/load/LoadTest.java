package io.hawser.simulator.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.simulator.engine.Costs;
import io.hawser.simulator.engine.Durations;
import io.hawser.simulator.engine.Simulation;
import io.hawser.simulator.engine.Tenant;
import io.hawser.simulator.engine.Work;
import io.hawser.turns.TurnRules;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

class LoadTest {
    private static final long S = 1_000_000_000;
    private static final TurnRules RULES = new TurnRules(4_000_000, 20_000_000, 100_000);

    @Test
    void shouldParseCountKindAndValues() {
        Load load = Load.parse("12xburst:kernel=0.1ms,kernels=7,window=3,pause=2s,weight=25,gpus=2,jitter=0,from=1s,"
            + "until=2s");
        assertEquals(new Load(load.label(), "burst", 12, 25, 2, 100_000, 7, 3, 2 * S, 0, S, 2 * S), load);
        assertEquals(new Load("flight", "flight", 1, 100, 1, 50_000, Work.ENDLESS, 8, 0, 0.1, 0, Long.MAX_VALUE),
            Load.parse("flight"));
    }

    private static void assertRefused(String text, String message) {
        IllegalArgumentException error = assertThrows(IllegalArgumentException.class, () -> Load.parse(List.of(text)),
            text);
        assertTrue(error.getMessage().contains(message), error.getMessage());
    }

    @Test
    void shouldRefuseOtherForms() {
        assertRefused("sleep", "a load must be [COUNTx]KIND");
        assertRefused("flight:", "a load must be [COUNTx]KIND");
        assertRefused("0xflight", "count must be 1 to 1000");
        assertRefused("1001xflight", "count must be 1 to 1000");
        assertRefused("flight:weight=0", "weight must be 1 to");
        assertRefused("flight:weight=1,weight=2", "each key once");
        assertRefused("flight:wight=1", "a load must have the keys");
        assertRefused("flight:kernel=5", "a time must be a number and");
        assertRefused("flight:kernel=0", "a kernel must take time");
        assertRefused("flight:jitter=1.5", "jitter must be 0 to 1");
        assertRefused("flight:from=2s,until=1s", "join before it leaves");
        assertThrows(IllegalArgumentException.class, () -> Load.parse(List.of("999xflight", "2xwait")));
    }

    @Test
    void shouldParseAndPrintTimes() {
        assertEquals(100_000, Durations.parse("0.0001s"));
        assertEquals(1, Durations.parse("1ns"));
        assertEquals("0 ns", Durations.format(0));
        assertEquals("1.50 us", Durations.format(1500));
        assertEquals("12.3 ms", Durations.format(12_340_000));
        assertEquals("1.00 s", Durations.format(999_999_999));
    }

    private static GeneratedRun run(Placement placement, long seed, String... loads) {
        Simulation simulation = new Simulation(RULES, Costs.NONE, 3, null);
        GeneratedRun run = new GeneratedRun(simulation, 3, placement, Load.parse(List.of(loads)), seed);
        simulation.run(S);
        return run;
    }

    private static List<List<Integer>> gpus(GeneratedRun run) {
        return run.placed().stream().map(placed -> placed.tenant().gpus()).toList();
    }

    @Test
    void shouldPlaceByTheGivenPlacement() {
        String[] loads = {"flight:weight=300", "2xflight", "wait:gpus=2", "wait"};
        assertEquals(List.of(List.of(0), List.of(1), List.of(2), List.of(0, 1), List.of(2)),
            gpus(run(Placement.roundRobin(), 1, loads)));
        assertEquals(List.of(List.of(0), List.of(1), List.of(2), List.of(1, 2), List.of(1)),
            gpus(run(Placement.leastLoaded(), 1, loads)));
        List<List<Placement.Gpu>> views = new ArrayList<>();
        run((load, gpus) -> {
            views.add(gpus);
            return List.of(2);
        }, 1, "flight:weight=7,until=10ms", "flight:from=1ms", "flight:from=20ms");
        assertEquals(List.of(new Placement.Gpu(2, 0, 0), new Placement.Gpu(2, 1, 7), new Placement.Gpu(2, 1, 100)),
            views.stream().map(gpus -> gpus.get(2)).toList());
        assertThrows(IllegalStateException.class, () -> run((load, gpus) -> List.of(0, 0), 1, "flight:gpus=2"));
    }

    private static Map<String, Double> ran(long seed) {
        return run(Placement.roundRobin(), seed, "5xwait", "4xburst", "3xflight", "long", "idle").placed().stream()
            .collect(Collectors.toMap(placed -> placed.tenant().vgpu(), placed -> placed.tenant().ranNs()));
    }

    @Test
    void shouldRepeatARunOfTheSameSeed() {
        Map<String, Double> first = ran(1);
        assertEquals(first, ran(1));
        assertTrue(!first.equals(ran(2)), "another seed must give another run");
        assertEquals(0, first.get("idle-14"));
    }

    @Test
    void shouldLetTenantsComeAndGo() {
        Tenant guest = run(Placement.roundRobin(), 1, "flight:from=200ms,until=500ms,jitter=0").placed().getFirst()
            .tenant();
        assertEquals(0.3 * S, guest.ranNs(), 1000);
        assertEquals(S / 2, guest.leftNs(), 1000);
    }
}
