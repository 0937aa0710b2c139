package io.hawser.ctl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.client.Item;
import io.hawser.client.Json;
import io.hawser.ctl.command.ExitCode;
import java.io.IOException;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Commands that concern a pool of brokers, with a stand-in for the REST interface of one of them. */
class PoolCommandsTest {
    private static final List<String> LISTS = List.of("gpus", "vgpus", "sessions", "regions");

    private final Map<String, Object> answers = new HashMap<>();
    private StandInBroker broker;

    @BeforeEach
    void start() throws IOException {
        broker = new StandInBroker(path -> answers.getOrDefault(path.substring("/api/v1/".length()),
            Map.of("detail", "the broker answers: broker=right")));
    }

    @AfterEach
    void stop() {
        broker.close();
    }

    private String done(String line) {
        StandInBroker.Ended ended = broker.run(line);
        assertEquals(ExitCode.OK, ended.exitCode(), line + ": " + ended.err());
        return ended.out();
    }

    private static Map<String, Object> peer(String name, boolean self, long silentMs, String tls) {
        Map<String, Object> peer = new LinkedHashMap<>();
        peer.put("name", name);
        peer.put("state", silentMs > 15000 ? "silent" : "ready");
        peer.put("silentMs", silentMs);
        peer.put("guestEndpoint", name + ":7654");
        peer.put("guestTlsEndpoint", tls);
        peer.put("version", "0.1.0");
        peer.put("gpus", 2L);
        peer.put("totalBytes", 2L << 30);
        peer.put("vgpus", 3L);
        peer.put("self", self);
        return peer;
    }

    @Test
    void shouldListTheBrokers() throws IOException {
        answers.put("brokers", List.of(peer("left", true, 900, "left:7656"), peer("right", false, 42900, "")));
        for (String line : new String[] {"brokers", "brokers list"}) {
            assertEquals(List.of(
                "BROKER           STATE           GPUS  MEMORY  VGPUS  GUESTS                     VERSION",
                "left (this one)  ready              2   2 GiB      3  left:7654,tls://left:7656  0.1.0",
                "right            silent for 42s     2   2 GiB      3  right:7654                 0.1.0"),
                done(line).lines().toList());
        }
        assertEquals(List.of("left\ttrue", "right\tfalse"), done("brokers --fields name,self").lines().toList());
        assertEquals(42900, Item.list(Json.read(done("brokers --json"))).get(1).number("silentMs"));
    }

    @Test
    void shouldSayThatABrokerIsAlone() throws IOException {
        answers.put("brokers", List.of());
        assertEquals("this broker is alone: it is in no pool", done("brokers list").strip());
        assertEquals("", done("brokers list --fields name"), "no object has the field");
        assertEquals(List.of(), Json.read(done("brokers list --json")));
    }

    @Test
    void shouldRemoveABroker() throws InterruptedException {
        broker.status = 204;
        assertEquals("removed: a/b", done("brokers remove a/b -y").strip());
        assertEquals("DELETE /api/v1/brokers/a%2Fb", broker.asked.take());
        broker.status = 409;
        StandInBroker.Ended refused = broker.run("brokers remove right --yes");
        assertEquals(ExitCode.REFUSED, refused.exitCode());
        assertEquals("hawserctl: refused: the broker answers: broker=right", refused.err().strip());
        broker.status = 403;
        assertEquals(ExitCode.NOT_ALLOWED, broker.run("brokers remove right -y").exitCode());
        broker.status = 404;
        assertEquals(ExitCode.NOT_FOUND, broker.run("brokers remove right -y").exitCode());
    }

    @Test
    void shouldShowTheBrokerOfEachObjectOnlyInAPool() {
        for (String list : LISTS) {
            for (String line : list.equals("gpus") ? List.of(list) : List.of(list, list + " list")) {
                answers.put(list, List.of(Map.of("name", "one", "broker", ""), Map.of("name", "two")));
                assertFalse(done(line).contains("BROKER"), line);
                answers.put(list, List.of(Map.of("name", "one", "broker", ""), Map.of("name", "two", "broker",
                    "right")));
                List<String> lines = done(line).lines().map(String::strip).toList();
                assertTrue(lines.getFirst().matches("\\S+ +BROKER .*"), lines.getFirst());
                assertTrue(lines.get(1).matches("\\S+ +- .*"), lines.get(1));
                assertTrue(lines.get(2).matches("\\S+ +right .*"), lines.get(2));
            }
        }
    }

    @Test
    void shouldAskForOneBroker() throws InterruptedException {
        LISTS.forEach(list -> answers.put(list, List.of()));
        for (String list : LISTS) {
            String line = list.equals("gpus") ? list : list + " list";
            done(line + " --of a&b");
            assertEquals("GET /api/v1/" + list + "?broker=a%26b", broker.asked.take());
            done(line);
            assertEquals("GET /api/v1/" + list, broker.asked.take());
        }
        done("vgpus list --label k=v --of left");
        assertEquals("GET /api/v1/vgpus?label=k%3Dv&broker=left", broker.asked.take());
    }

    @Test
    void shouldNameTheBrokerOfANewVgpu() throws InterruptedException {
        answers.put("vgpus", Map.of("name", "a", "broker", "right"));
        assertTrue(done("vgpus create a --at right").lines().anyMatch(line -> line.matches("broker +right")));
        assertEquals("POST /api/v1/vgpus {\"name\":\"a\",\"broker\":\"right\"}", broker.asked.take());
        answers.put("vgpus", Map.of("name", "a", "broker", ""));
        assertFalse(done("vgpus create a").contains("broker"));
        assertEquals("POST /api/v1/vgpus {\"name\":\"a\"}", broker.asked.take());
    }

    @Test
    void shouldShowTheNameAndTheProblemOfAMember() {
        answers.put("broker", Map.of("name", "left", "poolProblem", "admits no guests", "pool", Map.of("size", 2L)));
        String member = done("broker");
        assertTrue(member.lines().anyMatch(line -> line.matches("name +left")), member);
        assertTrue(member.lines().anyMatch(line -> line.matches("poolProblem +admits no guests")), member);
        answers.put("broker", Map.of("name", "", "poolProblem", "", "backend", "", "pool", Map.of("size", 2L)));
        String alone = done("broker");
        assertTrue(alone.contains("pool.size") && alone.contains("backend"), alone);
        assertFalse(alone.contains("name") || alone.contains("poolProblem"), alone);
    }
}
