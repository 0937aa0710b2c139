package io.hawser.check;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/** Loads a broker with guests, kills and disconnects, in rounds, and checks for leaks. */
final class Soak {
    private static final int CLIENTS = 200;
    private static final int CLIENTS_WITH_WORKERS = 4;
    private static final int POOL_SIZE = 2;
    private static final Duration END_LIMIT = Duration.ofSeconds(180);
    private static final Duration IDLE_LIMIT = Duration.ofSeconds(180);
    private static final int LOOK_EVERY_MS = 100;
    private static final int EXIT_LOST = 3; // exit code of hold when CUDA reports a lost device
    private static final String BROKER = "soak";
    private static final List<String> PROGRAMS = List.of("drv_vector_add", "drv_streams_events", "drv_vmm",
        "drv_graph_memory", "drv_copies_2d_3d");
    // Here all clients have one address, so a broker's usual limits would reject most of them.
    private static final List<String> SETTINGS = List.of("-Dhawser.listen.max-half-open=400",
        "-Dhawser.listen.max-per-peer=400");

    private final Installation installation;
    private final Children children;
    private final Workplace workplace;
    private final String backend;
    private final Guests guests;
    private final Random random;
    private final List<String> faults = new ArrayList<>();
    private BrokerChild broker;
    private int programs;
    private int killedGuests;
    private int killedWorkers;
    private int clients;

    Soak(Installation installation, Children children, Workplace workplace, String backend, long seed) {
        this.installation = installation;
        this.children = children;
        this.workplace = workplace;
        this.backend = backend;
        guests = new Guests(installation, null, children, workplace.folder());
        random = new Random(seed);
    }

    /** Runs for about this time, and prints the resources before and after. @return whether there was no fault. */
    boolean run(Duration time) {
        long end = System.nanoTime() + time.toNanos();
        start();
        try {
            round(); // the first round loads classes and opens files, which is not a leak
            BrokerBelongings before = idle();
            programs = 0;
            killedGuests = 0;
            killedWorkers = 0;
            clients = 0;
            System.out.println("before  " + before);
            int rounds = 0;
            do {
                round();
                rounds++;
            } while (System.nanoTime() < end);
            BrokerBelongings after = settled(before);
            System.out.println("after   " + after);
            System.out.printf("%d rounds: %d programs, %d guests and %d workers killed, %d clients vanished%n", rounds,
                programs, killedGuests, killedWorkers, clients);
            faults.addAll(after.leaksSince(before));
            killBroker(before);
        } finally {
            broker.close();
        }
        faults.addAll(broker.defects());
        faults.forEach(fault -> System.out.println("LEAK OR FAULT: " + fault));
        System.out.println(faults.isEmpty() ? "soak: nothing has leaked" : "soak: failed");
        return faults.isEmpty();
    }

    private void start() {
        broker = BrokerChild.start(installation, children, workplace, System.getenv(), backend, BROKER, POOL_SIZE,
            SETTINGS);
    }

    private void round() {
        for (Way way : List.of(Way.TCP, Way.SHM)) {
            program(way, PROGRAMS.get(random.nextInt(PROGRAMS.size())));
            killGuest(way);
            killWorker(way);
        }
        vanish();
    }

    private Guests.Started program(Way way, String name, String... arguments) {
        Guests.Started started = guests.start(way, broker, name, List.of(arguments));
        expect(name + " over " + way.label(), started, 0);
        programs++;
        return started;
    }

    private void expect(String what, Guests.Started started, int exit) {
        if (!children.await(started.process(), END_LIMIT)) {
            faults.add(what + " did not end; see " + started.err());
        } else if (started.process().exitValue() != exit && started.process().exitValue() != 77) {
            faults.add(what + " ended with " + started.process().exitValue() + " instead of " + exit + "; see "
                + started.err());
        }
    }

    /** Starts a guest that holds a session; null, with a fault noted, if it does not become ready. */
    private Guests.Started hold(Way way) {
        Guests.Started hold = guests.start(way, broker, "hold", List.of("--memory", "32", "--pinned", "4"));
        long end = System.nanoTime() + END_LIMIT.toNanos();
        while (System.nanoTime() < end && hold.process().isAlive()) {
            try {
                if (Files.readString(hold.out()).contains("READY")) {
                    return hold;
                }
            } catch (IOException e) {
                throw new CheckException("an output must be readable: " + hold.out(), e);
            }
            pause();
        }
        faults.add("hold over " + way.label() + " is not ready; see " + hold.err());
        children.await(hold.process(), Duration.ZERO);
        return null;
    }

    private void killGuest(Way way) {
        Guests.Started hold = hold(way);
        if (hold != null) {
            pause(random.nextInt(50));
            hold.process().destroyForcibly();
            children.await(hold.process(), END_LIMIT);
            killedGuests++;
        }
    }

    private void killWorker(Way way) {
        Guests.Started hold = hold(way);
        if (hold == null) {
            return;
        }
        for (var session : broker.get("/api/v1/sessions")) {
            if (session.path("guestPid").asLong() == hold.process().pid()) {
                ProcessHandle.of(session.path("workerPid").asLong()).ifPresent(ProcessHandle::destroyForcibly);
            }
        }
        expect("hold whose worker was killed, over " + way.label(), hold, EXIT_LOST);
        killedWorkers++;
    }

    private void vanish() {
        try {
            String token = Files.readString(workplace.folder().resolve(BROKER).resolve("default.token"));
            long hash = Long.parseUnsignedLong(broker.get("/api/v1/broker").path("descriptionHash").asText(), 16);
            int done = new VanishingClients(broker.get("/api/v1/broker").path("guestEndpoint").asText(), hash, token)
                .run(CLIENTS, CLIENTS_WITH_WORKERS);
            if (done < CLIENTS / 2) {
                faults.add("of " + CLIENTS + " clients only " + done + " reached their stage");
            }
            clients += CLIENTS;
        } catch (IOException e) {
            throw new CheckException("the broker's token must be readable", e);
        }
    }

    /** Waits until the broker has no session and its pool is full. */
    private BrokerBelongings idle() {
        broker.awaitNoSession();
        broker.awaitReady();
        long end = System.nanoTime() + IDLE_LIMIT.toNanos();
        BrokerBelongings now = BrokerBelongings.of(broker);
        while (System.nanoTime() < end && (now.workers() != POOL_SIZE || now.sessions() + now.deviceBytes() != 0)) {
            pause();
            now = BrokerBelongings.of(broker);
        }
        return now;
    }

    /** The same, and waits for resources that are freed slowly. */
    private BrokerBelongings settled(BrokerBelongings before) {
        BrokerBelongings now = idle();
        long end = System.nanoTime() + IDLE_LIMIT.toNanos();
        while (System.nanoTime() < end && !now.leaksSince(before).isEmpty()) {
            pause();
            now = idle();
        }
        return now;
    }

    /**
     * Kills the broker while it has two guests. Both lose their device, its workers end, and the next broker serves.
     */
    private void killBroker(BrokerBelongings before) {
        Guests.Started tcp = hold(Way.TCP);
        Guests.Started shm = hold(Way.SHM);
        List<ProcessHandle> workers = broker.process().descendants().toList();
        broker.process().destroyForcibly();
        for (Guests.Started hold : tcp == null || shm == null ? List.<Guests.Started>of() : List.of(tcp, shm)) {
            expect("hold whose broker was killed", hold, EXIT_LOST);
        }
        long end = System.nanoTime() + IDLE_LIMIT.toNanos();
        while (System.nanoTime() < end && workers.stream().anyMatch(ProcessHandle::isAlive)) {
            pause();
        }
        long left = workers.stream().filter(ProcessHandle::isAlive).count();
        if (left > 0) {
            faults.add("workers outlive their killed broker: " + left);
        }
        faults.addAll(broker.defects()); // the next broker overwrites the log
        Path state = workplace.folder().resolve(BROKER);
        try {
            Files.deleteIfExists(state.resolve("endpoints.json")); // left over from the killed broker
        } catch (IOException e) {
            throw new CheckException("the state folder must be writable: " + state, e);
        }
        start();
        program(Way.TCP, "drv_vector_add");
        program(Way.SHM, "drv_vector_add");
        BrokerBelongings again = idle();
        System.out.println("again    " + again);
        for (Map.Entry<String, Boolean> one : Map.of("sessions", again.sessions() == 0, "device memory",
            again.deviceBytes() == 0, "workers", again.workers() <= before.workers()).entrySet()) {
            if (!one.getValue()) {
                faults.add("after a new start: " + one.getKey() + ": " + again);
            }
        }
    }

    private static void pause() {
        pause(LOOK_EVERY_MS);
    }

    private static void pause(int ms) {
        try {
            TimeUnit.MILLISECONDS.sleep(ms); // there is no event for processes and REST
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new CheckException("interrupted", e);
        }
    }
}
