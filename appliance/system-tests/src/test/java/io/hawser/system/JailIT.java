package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The process of a worker with a guest, examined from outside. ProgramsIT shows that programs run in the same jail. */
class JailIT {
    private static final long FIRST_USER = 1_900_000_000L;
    private static final int USERS = 65536;
    private static final String FILTER = "2"; // proc_pid_status(5): SECCOMP_MODE_FILTER

    @TempDir
    private Path stateDir;

    /** The fields of a thread's status. */
    private static Map<String, String> status(Path folder) throws IOException {
        Map<String, String> fields = new HashMap<>();
        for (String line : Files.readAllLines(folder.resolve("status"))) {
            int colon = line.indexOf(':');
            fields.put(line.substring(0, colon), line.substring(colon + 1).strip());
        }
        return fields;
    }

    private static boolean isRoot() throws IOException {
        return status(Path.of("/proc/self")).get("CapEff").startsWith("000001ff");
    }

    /** Checks every thread of the worker, including threads that the JVM and the GPU have started later. */
    private static void assertAllThreadsJailed(Path worker, boolean ownUser) throws IOException {
        int threads = 0;
        try (Stream<Path> tasks = Files.list(worker.resolve("task"))) {
            for (Path task : tasks.toList()) {
                Map<String, String> status;
                try {
                    status = status(task);
                } catch (IOException e) {
                    if (Files.exists(task)) {
                        throw e;
                    }
                    continue; // the thread ended before its file was opened or read
                }
                threads++;
                assertEquals(FILTER, status.get("Seccomp"), status::toString);
                assertEquals("1", status.get("NoNewPrivs"), status::toString);
                if (ownUser) {
                    assertEquals("0000000000000000", status.get("CapEff"), status::toString);
                    assertEquals("0000000000000000", status.get("CapPrm"), status::toString);
                    assertEquals("", status.get("Groups"), status::toString);
                    List<String> ids = List.of(status.get("Uid").split("\\s+"));
                    long user = Long.parseLong(ids.getFirst());
                    assertTrue(user >= FIRST_USER && user < FIRST_USER + USERS, ids::toString);
                    assertEquals(4, ids.stream().filter(ids.getFirst()::equals).count(), ids::toString);
                }
            }
        }
        assertTrue(threads > 5, "threads=" + threads);
    }

    @Test
    void shouldJailWorkersBeforeTheyMeetTheirGuests() throws Exception {
        try (BrokerProcess broker = BrokerProcess.start("jail", stateDir.resolve("state"), Map.of())) {
            String jail = broker.info().path("jail").asText();
            assertTrue(jail.startsWith("auto: "), jail);
            assertTrue(jail.contains("system calls"), jail);
            assertTrue(jail.contains("; cgroup: memory and ") || jail.contains("; cgroup: no ("), jail);
            try (GuestProgram program = GuestProgram.start(broker, Carrier.TCP, "hold")) {
                program.awaitLine("READY");
                Path worker = Path.of("/proc/" + broker.sessions().get(0).path("workerPid").asLong());
                assertAllThreadsJailed(worker, isRoot());
                if (isRoot()) {
                    assertFalse(jail.contains("not:"), jail);
                    assertNotEquals(Files.readSymbolicLink(Path.of("/proc/self/ns/net")),
                        Files.readSymbolicLink(worker.resolve("ns/net")));
                    try (Stream<Path> files = Files.list(worker.resolve("root"))) {
                        assertEquals(List.of(), files.toList());
                    }
                }
            }
            broker.awaitIdle();
        }
    }

    @Test
    void shouldRunStrictlyWhereItCan() throws Exception {
        assumeTrue(isRoot(), "SKIPPED: a complete jail needs root");
        try (BrokerProcess broker = BrokerProcess.start("jail-strict", stateDir.resolve("state"),
            Map.of("hawser.worker.jail", "strict"))) {
            String jail = broker.info().path("jail").asText();
            assertTrue(jail.startsWith("strict: "), jail);
            for (Carrier carrier : Carrier.values()) {
                try (GuestProgram program = GuestProgram.start(broker, carrier, "drv_streams_events")) {
                    program.await().assertPassed().assertOver(carrier);
                }
            }
            broker.awaitIdle();
        }
    }

    @Test
    void shouldReportADisabledJail() throws Exception {
        try (BrokerProcess broker = BrokerProcess.start("jail-off", stateDir.resolve("state"),
            Map.of("hawser.worker.jail", "off"))) {
            assertEquals("off", broker.info().path("jail").asText());
            try (GuestProgram program = GuestProgram.start(broker, Carrier.TCP, "drv_vector_add")) {
                program.await().assertPassed().assertOver(Carrier.TCP);
            }
            broker.awaitIdle();
        }
    }
}
