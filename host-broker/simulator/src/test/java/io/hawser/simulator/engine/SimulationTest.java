package io.hawser.simulator.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.turns.TurnRules;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The model of GPUs and tenants. */
class SimulationTest {
    private static final long MS = 1_000_000;
    private static final long S = 1000 * MS;
    private static final TurnRules RULES = new TurnRules(4 * MS, 20 * MS, 100_000);

    private static Work endless(long kernelNs, int window) {
        return round -> round.set(0, kernelNs, Work.ENDLESS, window);
    }

    @Test
    void shouldRunATenantThatIsAloneWithoutALoss() {
        Simulation simulation = new Simulation(RULES, Costs.NONE, 1, null);
        int[] rounds = new int[1];
        Tenant tenant = simulation.add("a", 100, List.of(0), round -> {
            rounds[0]++;
            round.set(3 * MS, MS, 2, 1);
        });
        simulation.run(S);
        assertEquals(0.4 * S, tenant.ranNs(), 2 * MS, "2 ms of 5");
        assertEquals(201, rounds[0], 1);
        assertEquals(0, tenant.longestWaitNs());
    }

    @Test
    void shouldCompleteOnlyTheLaunchedKernelsAfterAStop() {
        Simulation simulation = new Simulation(RULES, Costs.NONE, 1, null);
        Tenant tenant = simulation.add("a", 100, List.of(0), endless(10 * MS, 2));
        simulation.run(5 * MS);
        tenant.stop();
        simulation.run(7 * MS);
        tenant.stop(); // again, when the first kernel is done
        simulation.run(S);
        assertEquals(20 * MS, tenant.ranNs(), 1000);
    }

    @Test
    void shouldUseGpusIndependently() {
        Simulation simulation = new Simulation(RULES, Costs.NONE, 2, null);
        Tenant first = simulation.add("a", 100, List.of(0), endless(50_000, 8));
        Tenant second = simulation.add("b", 100, List.of(1), endless(50_000, 8));
        simulation.run(S);
        assertEquals(S, first.ranNs(), 1000);
        assertEquals(S, second.ranNs(), 1000);
    }

    @Test
    void shouldRunATenantOfSeveralGpusOnAllOfThemAtOnce() {
        Simulation simulation = new Simulation(RULES, Costs.NONE, 2, null);
        Tenant both = simulation.add("both", 100, List.of(0, 1), endless(50_000, 8));
        Tenant first = simulation.add("first", 100, List.of(0), endless(50_000, 8));
        Tenant second = simulation.add("second", 100, List.of(1), endless(50_000, 8));
        simulation.run(3 * S);
        for (Tenant tenant : List.of(both, first, second)) {
            assertEquals(S, tenant.ranNs(), 0.03 * S, "a third of the one turn: " + tenant.vgpu());
        }
    }

    @Test
    void shouldChargeTheSwitchToTheTime() {
        Simulation simulation = new Simulation(RULES, new Costs(MS, 0, 0), 1, null);
        Tenant one = simulation.add("one", 100, List.of(0), endless(50_000, 1));
        Tenant other = simulation.add("other", 100, List.of(0), endless(50_000, 1));
        simulation.run(S);
        double lostNs = S - one.ranNs() - other.ranNs();
        assertEquals(one.turns() + other.turns(), lostNs / MS, 3, "a millisecond for each turn");
        assertTrue(one.turns() > 50);
    }

    @Test
    void shouldCountTurnsInWhichNothingWasLaunched() {
        Simulation simulation = new Simulation(RULES, new Costs(0, 500_000, 0), 1, null);
        simulation.add("flood", 100, List.of(0), endless(50_000, 8));
        Tenant sleeper = simulation.add("sleeper", 100, List.of(0), round -> round.set(10 * MS, MS, 1, 1));
        simulation.run(S);
        assertEquals(0, sleeper.lostTurns());
        assertTrue(sleeper.turns() > 50, "turns=" + sleeper.turns());
        simulation.remove(sleeper);
        Simulation other = new Simulation(RULES, new Costs(0, 50 * MS, 0), 1, null); // longer than a turn
        Tenant one = other.add("one", 100, List.of(0), endless(50_000, 8));
        Tenant two = other.add("two", 100, List.of(0), endless(50_000, 8));
        other.run(S);
        assertTrue(one.lostTurns() + two.lostTurns() > 50, "lost=" + one.lostTurns() + "," + two.lostTurns());
    }

    @Test
    void shouldShareAGpuEvenlyWithoutTurns() {
        Simulation simulation = new Simulation(RULES, Costs.NONE, 1, null);
        simulation.leaveEqual();
        Tenant one = simulation.add("one", 100, List.of(0), endless(50_000, 1));
        Tenant other = simulation.add("other", 100, List.of(0), round -> round.set(0, 10 * MS, 10, 1));
        simulation.run(S);
        assertEquals(0.5 * S, one.ranNs(), MS);
        assertEquals(0.5 * S, other.ranNs(), MS);
        assertEquals(0, one.turns());
    }

    @Test
    void shouldDivideQueuesWhenTheSessionThatJoinedThemLeaves() {
        Simulation simulation = new Simulation(RULES, Costs.NONE, 2, null);
        Tenant first = simulation.add("first", 100, List.of(0), endless(50_000, 8));
        Tenant second = simulation.add("second", 100, List.of(1), endless(50_000, 8));
        Tenant both = simulation.add("both", 100, List.of(1, 0), endless(50_000, 8));
        simulation.at(S, () -> simulation.remove(both));
        simulation.run(2 * S);
        assertEquals(S / 3.0, both.ranNs(), 0.03 * S);
        assertEquals(S / 3.0 + S, first.ranNs(), 0.03 * S);
        assertEquals(S / 3.0 + S, second.ranNs(), 0.03 * S);
        assertEquals(List.of(first, second), simulation.tenants());
    }

    @Test
    void shouldGiveTheSameResultsForAnyPartsOfTheTime() {
        double[] whole = run(1);
        double[] parts = run(1000);
        assertEquals(whole[0], parts[0], 1);
        assertEquals(whole[1], parts[1], 1);
    }

    private static double[] run(int parts) {
        Simulation simulation = new Simulation(RULES, new Costs(100_000, 50_000, 250_000), 1, null);
        Tenant flood = simulation.add("flood", 100, List.of(0), endless(50_000, 8));
        Tenant looper = simulation.add("looper", 300, List.of(0), round -> round.set(20_000, 200_000, 1, 1));
        for (int i = 0; i < parts; i++) {
            simulation.run(2 * S / parts);
        }
        return new double[] {flood.ranNs(), looper.ranNs()};
    }
}
