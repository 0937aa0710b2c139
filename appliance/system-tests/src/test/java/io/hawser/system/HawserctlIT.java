package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code hawserctl} with a real broker: its output, its actions, its errors and its exit codes. */
class HawserctlIT {
    private static final int REFUSED = 1;
    private static final int USAGE = 2;
    private static final int NOT_REACHABLE = 3;
    private static final int NOT_ALLOWED = 4;
    private static final int NOT_FOUND = 5;

    @TempDir
    private static Path folder;
    private static BrokerProcess broker;
    private static Hawserctl admin;

    @BeforeAll
    static void startBroker() throws Exception {
        broker = BrokerProcess.start("hawserctl", folder.resolve("state"),
            BrokerProcess.withQuickWorkers(Map.of()));
        admin = new Hawserctl(Files.createDirectories(folder.resolve("home")), Map.of("HAWSERCTL_STATE_DIR",
            broker.stateDir().toString())).withClassCache(folder.resolve("hawserctl.aot"));
    }

    @AfterAll
    static void stopBroker() {
        if (broker != null) {
            broker.close();
        }
    }

    @Test
    void shouldShowTheBrokerAndItsGpus() throws Exception {
        assertEquals(broker.guest(), admin.run("broker").assertDone().row("guestEndpoint").get(1));
        assertEquals("software", admin.run("broker --json").assertDone().json().path("backend").asText());
        JsonNode gpus = admin.run("gpus --json").assertDone().json();
        assertEquals(broker.gpus().get(0).path("uuid"), gpus.get(0).path("uuid"));
        assertEquals("ok", gpus.get(0).path("health").asText());
        List<String> row = admin.run("gpus").assertDone().row("0", "Hawser software GPU");
        assertEquals("ok", row.getLast());
    }

    @Test
    void shouldListShowAndEndSessions() throws Exception {
        try (GuestProgram program = GuestProgram.start(broker, Carrier.TCP, "hold");
            GuestProgram other = GuestProgram.start(broker, Carrier.TCP, "hold")) {
            program.awaitLine("READY");
            other.awaitLine("READY");
            JsonNode sessions = admin.run("sessions list --json").assertDone().json();
            assertEquals(2, sessions.size());
            String id = sessions.get(0).path("id").asText();
            String next = sessions.get(1).path("id").asText();
            assertTrue(admin.run("sessions").assertDone().row(id, "default", "running", "tcp", "hold").size() > 5);
            assertEquals(2, admin.run("sessions list --vgpu default --json").json().size());
            assertEquals(0, admin.run("sessions list --vgpu other --json").assertDone().json().size());
            assertEquals("hold", admin.run("sessions show " + id).assertDone().row("program").get(1));
            assertEquals(id, admin.run("sessions show " + id + " --json").json().path("id").asText());
            admin.run("sessions end 4711 " + id).assertExit(NOT_FOUND).assertSays("there is no such session: id=4711");
            admin.run("sessions show " + id).assertExit(NOT_FOUND);
            assertEquals("ended: " + next, admin.run("sessions end --yes " + next).assertDone().out().strip());
            admin.run("sessions end " + next).assertExit(NOT_FOUND);
        }
        broker.awaitIdle();
    }

    @Test
    void shouldMakeAndDeleteRegions() throws Exception {
        Path file = Path.of("/dev/shm/hawserctl-it-" + ProcessHandle.current().pid());
        try {
            JsonNode made = admin.run("regions create one --size 16M --slots 2 --guest-timeout 7 --json --path " + file)
                .assertDone().json();
            assertEquals(16 << 20, made.path("sizeBytes").asLong());
            assertEquals(7000, made.path("guestTimeoutMs").asLong());
            assertEquals(List.of("one", "serving", "default", "16 MiB", "0/2", "0", file.toString()),
                admin.run("regions").assertDone().row("one"));
            assertEquals("0", admin.run("regions show one").assertDone().row("slotsInUse").get(1));
            admin.run("regions create one --size 16M --path " + file).assertExit(REFUSED).assertSays("refused: ");
            admin.run("regions create two --path " + folder.resolve("disk")).assertExit(REFUSED)
                .assertSays("below a folder of hawser.region-folders");
            admin.run("regions create two --path ivshmem:0123456789abcdef0123456789abcdef").assertExit(REFUSED)
                .assertSays("an ivshmem device must carry");
            admin.run("regions delete one").assertDone();
            assertFalse(Files.exists(file));
            admin.run("regions delete one").assertExit(NOT_FOUND);
            admin.run("regions show ../../etc").assertExit(NOT_FOUND);
        } finally {
            Files.deleteIfExists(file);
        }
    }

    @Test
    void shouldNameTheRejectedCredentials() throws Exception {
        assertEquals("admin", admin.run("who").assertDone().row("admin.token").get(1));
        Hawserctl nobody = admin.with(Map.of("HAWSERCTL_URL", broker.http()));
        nobody.run("gpus").assertExit(NOT_ALLOWED).assertSays("--token-file");
        Path wrong = Files.writeString(folder.resolve("wrong"), "not-a-token\n");
        nobody.run("gpus --token-file " + wrong).assertExit(NOT_ALLOWED).assertSays(wrong.toString());
        assertFalse(nobody.run("gpus --token-file " + wrong).err().contains("not-a-token"));
        nobody.run("gpus --token-file " + broker.stateDir().resolve("admin.token")).assertDone();
        nobody.run("gpus --token-file " + folder.resolve("none")).assertExit(USAGE);
    }

    @Test
    void shouldLogInAndOut() throws Exception {
        Path password = Files.writeString(folder.resolve("password"), "correct horse\n");
        Process set = new ProcessBuilder(Chain.ROOT.resolve("host-broker/broker/src/main/sh/hawser-broker").toString(),
            "-Dhawser.state-dir=" + broker.stateDir(), "--set-password", "vera", "viewer")
            .redirectInput(password.toFile()).redirectErrorStream(true).start();
        String said = new String(set.getInputStream().readAllBytes());
        assertEquals(0, set.waitFor(), said);
        Hawserctl vera = new Hawserctl(Files.createDirectories(folder.resolve("vera")), Map.of());
        String where = " --url " + broker.http();
        vera.run("login vera --password-file " + Files.writeString(folder.resolve("bad"), "no\n") + where)
            .assertExit(NOT_ALLOWED).assertSays("the broker does not accept vera");
        vera.run("login vera --password-file " + password + where).assertDone();
        assertEquals(List.of("vera", "viewer", "cookie", broker.http()), vera.run("who").assertDone().row("vera"));
        vera.run("gpus").assertDone();
        vera.run("sessions end 1").assertExit(NOT_ALLOWED).assertSays("not allowed: ");
        assertEquals("password", vera.run("who --json --user vera --password-file " + password + where).json()
            .path("via").asText());
        vera.run("logout").assertDone();
        vera.run("who" + where).assertExit(NOT_ALLOWED);
    }

    @Test
    void shouldReportThatNoBrokerAnswers() throws Exception {
        admin.with(Map.of()).run("gpus").assertExit(NOT_REACHABLE).assertSays("--url or --state-dir");
        admin.run("gpus --state-dir " + folder).assertExit(NOT_REACHABLE).assertSays("no such file");
        admin.run("gpus --url https://" + broker.http().substring("http://".length())).assertExit(NOT_REACHABLE)
            .assertSays("--ca-file");
        admin.run("gpus --url http://" + broker.guest()).assertExit(NOT_REACHABLE);
        admin.run("gpus --what").assertExit(USAGE);
    }

    @Test
    void shouldMakeChangeAndDeleteVgpus() throws Exception {
        JsonNode made = admin.run("vgpus create one --memory 1.5G --share 30 --gpus 0 --max-sessions 4 --carriers tcp"
            + " --owner host:guest.example --json").assertDone().json();
        assertEquals(3L << 29, made.path("memoryBytes").asLong());
        assertEquals("ready", made.path("state").asText());
        assertEquals("guest.example", made.path("owner").path("id").asText());
        List<String> row =
            admin.run("vgpus").assertDone().row("one", "ready", "1.5 GiB", "0 B", "-", "30", "shared", "0");
        assertEquals(List.of("tcp", "0/4", "0", "host:guest.example", "rest"), row.subList(8, row.size()));
        assertEquals("30", admin.run("vgpus show one").assertDone().row("share").get(1));
        assertEquals(1610612736, admin.run("gpus --json").json().get(0).path("reservedBytes").asLong());
        JsonNode changed = admin.run("vgpus change one --share 70 --owner none --json").assertDone().json();
        assertEquals(70, changed.path("computeShare").asInt());
        assertEquals(3L << 29, changed.path("memoryBytes").asLong(), "omitted properties stay unchanged");
        assertEquals("true", admin.run("vgpus change one --swappable").assertDone().row("swappable").get(1));
        assertEquals("false", admin.run("vgpus change one --no-swappable").assertDone().row("swappable").get(1));
        admin.run("vgpus change one --swappable --gpus all").assertExit(REFUSED)
            .assertSays("must have one GPU: gpus=all");
        admin.run("vgpus create one").assertExit(REFUSED).assertSays("refused: ");
        admin.run("vgpus create two --memory 900T").assertExit(REFUSED).assertSays("totalBytes=");
        admin.run("vgpus show two").assertExit(NOT_FOUND);
        admin.run("vgpus change two --share 3").assertExit(NOT_FOUND);
        assertEquals("deleted: one", admin.run("vgpus delete one").assertDone().out().strip());
        admin.run("vgpus delete one --yes").assertExit(NOT_FOUND);
        assertEquals("default", admin.run("vgpus list --json").assertDone().json().get(0).path("name").asText());
    }

    @Test
    void shouldMakeVgpusThatExpireAndFindThemByTheirLabels() throws Exception {
        String create = "vgpus create brief --memory 64M --label slurm.job=7 --label user=ann --if-absent --expires ";
        JsonNode made = admin.run(create + "2h --json").assertDone().json();
        assertEquals("7", made.path("labels").path("slurm.job").asText());
        JsonNode again = admin.run(create + "3h --json").assertDone().json();
        assertEquals(made.path("id"), again.path("id"));
        assertTrue(again.path("expires").asText().compareTo(made.path("expires").asText()) > 0, "renewed");
        admin.run("vgpus create brief --memory 65M --if-absent").assertExit(REFUSED).assertSays("other properties");
        admin.run("vgpus create brief --memory 64M").assertExit(REFUSED).assertSays("already exists");
        List<String> row = admin.run("vgpus show brief").assertDone().row("labels");
        assertEquals("slurm.job=7 user=ann", row.get(1));
        assertEquals("brief\t7\tnone\n", admin.run("vgpus list --label slurm.job=7 --label user=ann"
            + " --fields name,labels.slurm.job,owner.kind").assertDone().out());
        assertEquals("", admin.run("vgpus list --label slurm.job=8 --fields name").assertDone().out());
        assertEquals("0", admin.run("vgpus statistics brief").assertDone().row("sessions").get(1));
        assertEquals("0\t0\n", admin.run("vgpus statistics brief --fields gpuTimeMs,peakBytes").assertDone().out());
        Path file = folder.resolve("brief.token");
        String token = "tokens create brief --note prolog --replace --fields keyId --out " + file;
        String lost = admin.run(token).assertDone().out().strip();
        String kept = admin.run(token).assertDone().out().strip();
        assertFalse(lost.equals(kept));
        assertEquals(kept + "\n", admin.run("tokens list brief --fields keyId").assertDone().out());
        assertTrue(Files.readString(file).startsWith(kept + "."));
        assertEquals("never", admin.run("vgpus change brief --expires never").assertDone().row("expires").get(1));
        admin.run("vgpus change brief --expires 1s").assertDone();
        Await.until("the expiry",
            () -> admin.run("vgpus list --fields name").out().contains("brief") ? "it exists" : "");
    }

    @Test
    void shouldMakeTokensThatOpenAVgpuUntilTheyAreRevoked() throws Exception {
        admin.run("vgpus create theirs --memory 64M").assertDone();
        Path file = folder.resolve("theirs.token");
        admin.run("tokens create theirs --expires 30d --out " + file + " --note", "for one test").assertDone();
        assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(file)));
        admin.run("tokens create theirs --out " + file).assertExit(USAGE).assertSays("there already");
        JsonNode tokens = admin.run("tokens list theirs --json").assertDone().json();
        assertEquals(1, tokens.size());
        String key = tokens.get(0).path("keyId").asText();
        assertEquals("for one test", admin.run("tokens list theirs").assertDone().row(key).getLast());
        assertEquals("theirs", admin.run("tokens list").assertDone().row(key).get(1));
        assertEquals(0, admin.run("tokens list --old-proofs --json").assertDone().json().size(), "all are new");
        JsonNode second = admin.run("tokens create theirs --json").assertDone().json();
        assertTrue(second.path("token").asText().startsWith(second.path("keyId").asText() + "."), "shown once");
        Map<String, String> guest = Map.of("HAWSER_BROKER", broker.guest(), "HAWSER_TOKEN_FILE", file.toString(),
            "HAWSER_CARRIER", "tcp");
        try (GuestProgram program = GuestProgram.start(guest, "hold")) {
            program.awaitLine("READY");
            assertEquals(1, admin.run("sessions list --vgpu theirs --json").json().size());
            admin.run("vgpus delete theirs").assertExit(REFUSED).assertSays("session");
            admin.run("tokens revoke theirs " + key).assertDone();
            Await.until("the end of the token's session", () -> admin.run("sessions --json").json().isEmpty() ? ""
                : "it still exists");
        }
        admin.run("tokens revoke theirs " + key).assertExit(NOT_FOUND);
        admin.run("tokens list none").assertExit(NOT_FOUND);
        admin.run("vgpus delete theirs --force").assertDone();
    }

    @Test
    void shouldFollowEvents() throws Exception {
        Path out = Files.createTempFile(folder, "follow", "");
        Process follow = admin.start(out, Files.createTempFile(folder, "err", ""), "events", "--follow");
        try {
            admin.run("vgpus create seen").assertDone();
            Await.until("the event of a vGPU",
                () -> Files.readString(out).contains("seen") ? "" : "output so far: " + Files.readString(out));
            admin.run("vgpus delete seen").assertDone();
        } finally {
            follow.destroy();
            follow.waitFor();
        }
        Hawserctl.Ended events = admin.run("events --limit 50").assertDone();
        assertTrue(events.out().startsWith("TIME") && events.out().contains("seen"), events.out());
        JsonNode newest = admin.run("events --json -n 2").assertDone().json();
        assertEquals(2, newest.size());
        assertTrue(newest.get(0).path("seq").asLong() > newest.get(1).path("seq").asLong());
        admin.run("events --limit 0").assertExit(REFUSED);
    }

    @Test
    void shouldShowThePresentState() throws Exception {
        try (GuestProgram program = GuestProgram.start(broker, Carrier.TCP, "hold")) {
            program.awaitLine("READY");
            // A new watcher first receives the broker's last picture, which may be older than the session.
            Await.until("a picture with the session", () -> {
                Hawserctl.Ended top = admin.run("top -n 1 --json").assertDone();
                return top.json().path("picture").path("sessions").size() == 1 ? "" : top.out();
            });
            Hawserctl.Ended top = admin.run("top --count 2").assertDone();
            assertEquals("ok", top.row("0", "Hawser software GPU").getLast());
            assertEquals("ready", top.row("default").get(1));
            assertTrue(top.out().contains("hold") && !top.out().contains("\033"), top.out());
            JsonNode picture = admin.run("top -n 1 --json").assertDone().json();
            assertEquals("hold", picture.path("picture").path("sessions").get(0).path("program").asText());
        }
        broker.awaitIdle();
    }
}
