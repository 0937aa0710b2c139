package io.hawser.broker.pool;

import static io.hawser.broker.pool.SimulatedPool.SECOND_NS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.pool.SimulatedPool.Served;
import io.hawser.broker.pool.SimulatedPool.Start;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The order of service, on a simulated clock. No test measures time. */
class StartQueueTest {
    private static final int CLIENTS = 4; // clients of the attacker, as in the benchmark
    private static final int MANY = 100; // processors, enough to start any number of workers at a time
    private static final StartRules RULES = new StartRules(MANY, 1, 1, 32);

    private static StartQueue.Stock stock(int size, int ready, int starting) {
        return new StartQueue.Stock(size, ready, starting, 0, false);
    }

    private static SimulatedPool pool(int size) {
        return new SimulatedPool(size, MANY, RULES);
    }

    /** Keeps {@link #CLIENTS} starts of the attacker in line for some seconds. */
    private static void attack(SimulatedPool pool, int seconds) {
        for (int i = 0; i < seconds * 100; i++) {
            while (pool.queue.sizes().getOrDefault("attacker", 0) < CLIENTS) {
                int before = pool.servedOf("attacker");
                pool.arrive("attacker");
                if (pool.servedOf("attacker") > before && pool.ready() == 0) {
                    break; // the session has begun and ended; the client comes again in the next step
                }
            }
            pool.pass(SECOND_NS / 100);
        }
    }

    @Test
    void shouldServeAVgpuInTheOrderOfArrival() {
        SimulatedPool pool = pool(0);
        List<Start> arrived = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            arrived.add(pool.arrive("a"));
        }
        pool.pass(10 * SECOND_NS);
        assertEquals(arrived, pool.served.stream().map(Served::start).toList());
    }

    @Test
    void shouldAlternateBetweenVgpusThatWait() {
        SimulatedPool pool = new SimulatedPool(0, 1, RULES);
        for (String vgpu : List.of("a", "a", "a", "a", "b", "b", "b", "b")) {
            pool.arrive(vgpu);
        }
        pool.pass(8 * SECOND_NS);
        assertEquals(List.of("a", "b", "a", "b", "a", "b", "a", "b"), pool.order());
    }

    @Test
    void shouldServeByShare() {
        SimulatedPool pool = new SimulatedPool(1, 1, RULES);
        pool.weigh("half", 50);
        pool.weigh("quarter", 25);
        for (int i = 0; i < 700; i++) {
            for (String vgpu : List.of("whole", "half", "quarter")) {
                while (pool.queue.sizes().getOrDefault(vgpu, 0) < CLIENTS) {
                    pool.arrive(vgpu);
                }
            }
            pool.pass(SECOND_NS);
        }
        int sum = pool.served.size();
        assertEquals(sum * 4.0 / 7, pool.servedOf("whole"), 4);
        assertEquals(sum * 2.0 / 7, pool.servedOf("half"), 4);
        assertEquals(sum * 1.0 / 7, pool.servedOf("quarter"), 4);
    }

    @Test
    void shouldServeAnotherVgpuAtOnceWhileOneBurnsWorkers() {
        SimulatedPool pool = new SimulatedPool(2, 1, RULES);
        pool.arrive("other");
        for (int i = 0; i < 50; i++) {
            attack(pool, 5);
            pool.arrive("other");
        }
        List<Served> others = pool.served.stream().filter(s -> s.start().vgpu().equals("other")).toList();
        assertEquals(51, others.size());
        others.forEach(start -> assertEquals(0, start.waitedNs(),
            "the pool must keep a ready worker for the other vGPU"));
        assertTrue(pool.servedOf("attacker") > 100, "the attacker must be served, too: " + pool.servedOf("attacker"));
    }

    @Test
    void shouldServeAVgpuThatHasRestedNextWhenNoWorkerIsReady() {
        SimulatedPool pool = pool(2);
        attack(pool, 30);
        int before = pool.served.size();
        pool.arrive("other"); // no worker is reserved, since the vGPU has never come before
        pool.pass(2 * SECOND_NS);
        assertEquals("other", pool.order().get(before));
    }

    @Test
    void shouldLetRestEarnNoMoreThanOneStart() {
        SimulatedPool pool = new SimulatedPool(0, 1, RULES);
        attack(pool, 60);
        int before = pool.served.size();
        for (int i = 0; i < 4; i++) {
            pool.arrive("other");
        }
        pool.pass(6 * SECOND_NS);
        assertEquals(List.of("other", "other", "attacker", "other"), pool.order().subList(before, before + 4),
            "the second is due, since the attacker was served last");
    }

    @Test
    void shouldReplaceTheReservedWorkerBeforeAVgpuAboveItsShareIsServed() {
        SimulatedPool pool = new SimulatedPool(1, 1, RULES);
        pool.arrive("other");
        attack(pool, 6);
        int before = pool.servedOf("attacker");
        pool.arrive("other");
        assertEquals(0, pool.served.getLast().waitedNs());
        assertEquals(0, pool.ready());
        while (pool.ready() == 0) {
            pool.pass(SECOND_NS / 10);
            assertEquals(before, pool.servedOf("attacker"),
                "the next worker must be reserved for the other vGPU again");
        }
    }

    @Test
    void shouldKeepTheLastReadyWorkerFromAVgpuAboveItsShare() {
        SimulatedPool pool = pool(2);
        pool.arrive("other");
        pool.pass(SECOND_NS);
        for (int i = 0; i < 8; i++) {
            pool.arrive("attacker");
        }
        pool.pass(9 * SECOND_NS);
        int equal = 2; // the second start puts the attacker above its share
        pool.served.stream().filter(s -> s.start().vgpu().equals("attacker")).skip(equal)
            .forEach(s -> assertTrue(s.readyBefore() > 1, s.toString()));
        assertEquals(8, pool.servedOf("attacker"), "the attacker's starts must continue");
    }

    @Test
    void shouldGiveTheLastReadyWorkerAgainWhenNobodyElseHasWaitedLately() {
        SimulatedPool pool = pool(1);
        pool.arrive("other");
        pool.pass(SECOND_NS);
        for (int i = 0; i < 3; i++) {
            pool.arrive("attacker");
            pool.pass(SECOND_NS);
        }
        int before = pool.servedOf("attacker");
        pool.pass(StartQueue.LATELY_NS);
        assertEquals(1, pool.ready());
        for (int i = 0; i < 5; i++) {
            pool.arrive("attacker");
            assertEquals(before + 1 + i, pool.servedOf("attacker"), "the queue must serve the start at once");
            pool.pass(SECOND_NS);
        }
    }

    @Test
    void shouldReserveOneWorkerForEachOtherVgpuAsFarAsThePoolGoes() {
        StartQueue<String> queue = new StartQueue<>(RULES, vgpu -> 100, () -> false, () -> 0);
        for (String vgpu : List.of("b", "c", "d")) {
            queue.offer(vgpu, vgpu);
            assertEquals(vgpu, queue.next(3, 3));
        }
        for (int i = 0; i < 2; i++) {
            queue.offer("a", "a" + i);
            assertEquals("a" + i, queue.next(4, 3));
        }
        queue.offer("a", "a2");
        assertNull(queue.next(3, 3));
        assertNull(queue.next(2, 2), "the reserve must not exceed the pool's size");
        assertEquals("a2", queue.next(3, 2));
    }

    @Test
    void shouldReplaceAllReservedWorkersAtOnce() {
        StartQueue<String> queue = new StartQueue<>(RULES, vgpu -> 100, () -> false, () -> 0);
        for (String vgpu : List.of("b", "c", "a", "a", "a")) {
            queue.offer(vgpu, vgpu);
            assertEquals(vgpu, queue.next(4, 4));
        }
        assertEquals(2, queue.toStart(stock(4, 0, 0)), "a worker for each other vGPU");
        assertEquals(1, queue.toStart(stock(4, 1, 0)));
        assertEquals(1, queue.toStart(stock(4, 2, 0)), "then as many workers as the ration allows");
        assertEquals(0, queue.toStart(stock(4, 2, 1)));
        queue.offer("a", "waits");
        assertEquals(1, queue.toStart(stock(1, 0, 0)), "at most the pool's size");
    }

    @Test
    void shouldLeaveAVgpuAloneWithAllWorkers() {
        SimulatedPool pool = pool(2);
        for (int i = 0; i < 20; i++) {
            pool.arrive("a");
            pool.arrive("a");
            assertEquals(0, pool.ready());
            pool.pass(SECOND_NS);
        }
        assertEquals(40, pool.servedOf("a"));
        for (int i = 0; i < 16; i++) {
            pool.arrive("a");
        }
        assertEquals(pool.queue.size(), pool.starting(), "a worker for each waiting start");
        assertTrue(pool.starting() >= 14, "starting=" + pool.starting());
    }

    @Test
    void shouldStartFewWorkersAtATimeForAVgpuAboveItsShare() {
        SimulatedPool pool = pool(2);
        pool.arrive("other");
        attack(pool, 4);
        pool.takeMostStarting();
        attack(pool, 4);
        assertEquals(1, pool.takeMostStarting());
    }

    @Test
    void shouldStartFewWorkersAtATimeForItWhileOthersUseAnotherPool() {
        SimulatedPool pool = pool(2);
        pool.activeElsewhere(true);
        attack(pool, 4);
        pool.takeMostStarting();
        attack(pool, 4);
        assertEquals(1, pool.takeMostStarting());
        pool.activeElsewhere(false);
        attack(pool, 4);
        assertTrue(pool.takeMostStarting() >= CLIENTS, "a vGPU alone must have all workers");
    }

    @Test
    void shouldStartAWorkerForEachStartThatIsNotAboveItsShare() {
        SimulatedPool pool = pool(2);
        pool.arrive("other");
        attack(pool, 4);
        for (int i = 0; i < 4; i++) {
            pool.arrive("other");
        }
        assertTrue(pool.starting() >= 3, "starting=" + pool.starting());
    }

    @Test
    void shouldChargeForAWorkerWhoseGuestHasLeft() {
        SimulatedPool pool = new SimulatedPool(0, MANY, RULES);
        pool.arrive("other");
        pool.pass(SECOND_NS);
        for (int i = 0; i < 3; i++) { // no session takes the worker of this start
            assertTrue(pool.leave(pool.arrive("attacker")));
            pool.pass(SECOND_NS);
        }
        assertEquals(0, pool.servedOf("attacker"));
        pool.arrive("attacker");
        pool.arrive("other");
        pool.pass(SECOND_NS);
        assertEquals(List.of("other", "other", "attacker"), pool.order());
    }

    @Test
    void shouldStartTheNextWorkerForTheVgpuThatHasFewestForItsStarts() {
        StartQueue<Integer> queue = new StartQueue<>(RULES, vgpu -> 100, () -> false, () -> 0);
        queue.offer("a", 1);
        queue.offer("a", 2);
        queue.offer("b", 3);
        assertEquals("a", queue.needsMost(List.of()));
        assertEquals("b", queue.needsMost(List.of("a", "a")));
        assertNull(queue.needsMost(List.of("a", "b", "a")));
    }

    @Test
    void shouldNotChargeForALeavingGuestWhoseWorkerServesAnother() {
        SimulatedPool pool = new SimulatedPool(0, MANY, RULES);
        Start first = pool.arrive("a");
        pool.arrive("b");
        pool.arrive("a");
        pool.leave(first);
        pool.pass(SECOND_NS);
        assertEquals(List.of("b", "a"), pool.order(), "b must come before a's second start");
        assertEquals(0, pool.starting() + pool.ready());
    }

    @Test
    void shouldRefuseAStartThatFindsItsLineFull() {
        SimulatedPool pool = new SimulatedPool(0, MANY, new StartRules(MANY, 1, 1, 3));
        for (int i = 0; i < 3; i++) {
            assertNotNull(pool.arrive("a"));
        }
        assertNull(pool.arrive("a"));
        assertNotNull(pool.arrive("b"), "the line of another vGPU must have room");
        assertEquals(Map.of("a", 3, "b", 1), pool.queue.sizes());
        pool.pass(SECOND_NS);
        assertNotNull(pool.arrive("a"));
    }

    @Test
    void shouldForgetVgpusThatDoNotComeAnyMore() {
        SimulatedPool pool = pool(1);
        for (int i = 0; i < 100; i++) {
            pool.arrive("v" + i);
            pool.pass(SECOND_NS / 2);
        }
        assertTrue(pool.queue.isActive());
        pool.pass(2 * StartQueue.LATELY_NS);
        assertFalse(pool.queue.isActive());
        assertEquals(Map.of(), pool.queue.sizes());
    }

    /** A vGPU with random arrivals and departures. */
    private static final class Tenant {
        private final String vgpu;
        private final int weight;
        private final double perSecond;
        private final List<Start> inLine = new ArrayList<>();

        Tenant(String vgpu, int weight, double perSecond) {
            this.vgpu = vgpu;
            this.weight = weight;
            this.perSecond = perSecond;
        }
    }

    private static List<Tenant> tenants(Random random) {
        List<Tenant> tenants = new ArrayList<>();
        for (int i = 0; i < 2 + random.nextInt(6); i++) {
            tenants.add(new Tenant("v" + i, 1 + random.nextInt(100), random.nextInt(3) == 0 ? 40
                : random.nextDouble()));
        }
        return tenants;
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233})
    void shouldServeEveryStartAndKeepNoWorkerFromAllWhateverComes(long seed) {
        Random random = new Random(seed);
        int size = random.nextInt(4);
        StartRules rules = new StartRules(1 + random.nextInt(8), 1 + random.nextInt(3), 1 + random.nextInt(2), 32);
        SimulatedPool pool = new SimulatedPool(size, 1 + random.nextInt(4), rules);
        pool.startingElsewhere(random.nextInt(8));
        pool.busy(random.nextBoolean());
        List<Tenant> tenants = tenants(random);
        tenants.forEach(tenant -> pool.weigh(tenant.vgpu, tenant.weight));
        int arrived = 0;
        for (int i = 0; i < 6000; i++) {
            for (Tenant tenant : tenants) {
                if (random.nextDouble() * 20 < tenant.perSecond && tenant.inLine.size() < 8) {
                    Start start = pool.arrive(tenant.vgpu);
                    assertNotNull(start);
                    tenant.inLine.add(start);
                    arrived++;
                }
                tenant.inLine.removeIf(start -> !pool.waits(start));
                if (!tenant.inLine.isEmpty() && random.nextInt(50) == 0
                    && pool.leave(tenant.inLine.removeLast())) {
                    arrived--;
                }
            }
            boolean waits = pool.queue.size() > 0;
            assertTrue(!waits || pool.starting() > 0, "a worker must start while a start waits: seed=" + seed);
            assertTrue(!waits || pool.ready() <= size, "the queue must not reserve more than the pool's size");
            pool.pass(SECOND_NS / 20);
        }
        pool.pass(3600 * SECOND_NS);
        assertEquals(0, pool.queue.size(), "starved: " + pool.queue.sizes());
        assertEquals(arrived, pool.served.size());
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233})
    void shouldBoundByHowManyStartsAnotherVgpuComesFirst(long seed) {
        Random random = new Random(seed);
        int size = random.nextInt(4);
        SimulatedPool pool = new SimulatedPool(size, 1 + random.nextInt(4), RULES);
        Map<String, Integer> weights = new HashMap<>();
        for (int i = 0; i < 2 + random.nextInt(5); i++) {
            weights.put("v" + i, 1 + random.nextInt(100));
            pool.weigh("v" + i, weights.get("v" + i));
        }
        for (int i = 0; i < 3000; i++) { // each vGPU always has starts in line
            weights.keySet().forEach(vgpu -> {
                while (pool.queue.sizes().getOrDefault(vgpu, 0) < CLIENTS) {
                    pool.arrive(vgpu);
                }
            });
            pool.pass(SECOND_NS / 4);
        }
        // Start-time fair queueing: |S1/w1 - S2/w2| <= 1/w1 + 1/w2 while both wait. Factor 2: a vGPU may lag at first.
        for (String one : weights.keySet()) {
            for (String two : weights.keySet()) {
                double first = 1.0 / weights.get(one);
                double second = 1.0 / weights.get(two);
                double difference = pool.servedOf(one) * first - pool.servedOf(two) * second;
                assertTrue(Math.abs(difference) <= 2 * (first + second) + 1e-9, () -> one + "="
                    + pool.servedOf(one) + " " + two + "=" + pool.servedOf(two) + " weights=" + weights);
            }
        }
    }
}
