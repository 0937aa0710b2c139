package io.hawser.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.hawser.broker.door.TestGuest;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The packaged broker while its disk is full and after the disk has room again. */
class FullDiskIT {
    private static final int DISK_KIBIBYTES = 2048;
    private static final int REFUSED = 4;
    private static final int MAX_MADE = 200; // each is some hundred bytes in H2's file

    @TempDir
    Path folder;

    private final Set<String> answered = new TreeSet<>(Set.of("default", "before"));
    private final List<String> refused = new ArrayList<>();
    private SmallDisk disk;
    private RealProcess broker;

    private RealProcess start(String name) throws IOException {
        Files.deleteIfExists(disk.fromOutside().resolve("endpoints.json"));
        broker = new RealProcess(folder, name, disk, "-Dhawser.worker.pool-size=1",
            "-Dhawser.worker.command=" + TestBroker.workerCommand("normal"));
        return broker;
    }

    private String log() {
        try {
            return "\n" + broker.output();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private HttpResponse<String> make(String name) {
        return broker.request("POST", "/api/v1/vgpus", "{\"name\":\"" + name + "\"}");
    }

    private Set<String> names() throws IOException {
        HttpResponse<String> answer = broker.request("GET", "/api/v1/vgpus", "");
        assertEquals(200, answer.statusCode(), answer.body());
        Set<String> names = new TreeSet<>();
        new ObjectMapper().readTree(answer.body()).forEach(vgpu -> names.add(vgpu.get("name").asText()));
        return names;
    }

    private int sessions() throws IOException {
        return new ObjectMapper().readTree(broker.request("GET", "/api/v1/sessions", "").body()).size();
    }

    @Test
    void shouldTakeChangesAgainOnceThereIsRoom() throws Exception {
        Path stateDir = Files.createDirectory(folder.resolve("state"));
        try (SmallDisk small = SmallDisk.at(stateDir, DISK_KIBIBYTES)) {
            disk = small;
            String token;
            try (RealProcess first = start("first")) {
                first.awaitReady();
                assertEquals(201, make("before").statusCode());
                HttpResponse<String> made = broker.request("POST", "/api/v1/vgpus/before/tokens", "{}");
                token = new ObjectMapper().readTree(made.body()).get("token").asText();
                try (TestGuest goesOn = broker.session(token)) {
                    disk.fill();
                    refuse();
                    assertEquals(1, sessions(), "the session must survive the full disk");
                    try (TestGuest comes = broker.session(token)) {
                        assertEquals(2, sessions(), "a new session must start");
                        refuse();
                        disk.free();
                        // The broker tries again within two seconds.
                        TestBroker.await("a successful change", () -> make("after").statusCode() == 201);
                        answered.add("after");
                        String ready = ready();
                        assertFalse(ready.contains("takes no changes"), ready);
                        assertEquals(2, sessions(), "both sessions must continue");
                    }
                }
                // A refused vGPU has left nothing behind, neither in memory nor in the database.
                for (String name : refused) {
                    assertEquals(201, make(name).statusCode());
                    assertEquals(204, broker.request("DELETE", "/api/v1/vgpus/" + name, "").statusCode());
                }
                assertEquals(answered, names());
            } // SIGKILL
            try (RealProcess again = start("second")) {
                again.awaitReady();
                assertEquals(answered, names());
                broker.session(token).close();
            }
        }
    }

    /**
     * Makes vGPUs until the broker has refused {@link #REFUSED} of them for the full disk and the health check reports
     * the cause. H2's file then has no room for another vGPU.
     */
    private void refuse() throws IOException {
        int before = refused.size();
        boolean told = false;
        for (int i = 0; refused.size() < before + REFUSED || !told; i++) {
            assertTrue(i < MAX_MADE, () -> "vGPUs that the broker made on a full disk: " + answered + log());
            disk.fill(); // takes the blocks that H2 may have freed
            String name = "full" + before + "-" + i;
            HttpResponse<String> answer = make(name);
            if (answer.statusCode() == 201) {
                answered.add(name);
                continue;
            }
            refused.add(name);
            assertEquals(503, answer.statusCode(), answer.body());
            assertTrue(answer.body().contains("No space left on device"), () -> answer.body() + log());
            assertEquals(answered, names(), "a refused change must not change the list");
            HttpResponse<String> audit = broker.request("GET", "/api/v1/audit", "");
            assertEquals(200, audit.statusCode(), () -> "the database must stay readable: " + audit.body() + log());
            told |= ready().contains("the database takes no changes: No space left on device");
        }
    }

    /** Returns the readiness check's answer. Asks again while the check reports that the database has not answered. */
    private String ready() {
        String[] said = {""};
        TestBroker.await("an answer of the database", () -> {
            HttpResponse<String> ready = broker.request("GET", "/q/health/ready", "");
            said[0] = ready.body();
            boolean isLate = said[0].contains("the database has not answered for");
            assertEquals(isLate ? 503 : 200, ready.statusCode(), ready.body());
            return !isLate;
        });
        return said[0];
    }
}
