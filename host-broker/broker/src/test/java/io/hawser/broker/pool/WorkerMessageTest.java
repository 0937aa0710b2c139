package io.hawser.broker.pool;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.model.Device;
import io.hawser.broker.model.WorkerStats;
import io.hawser.shm.control.WorkerMessageType;
import io.hawser.shm.ledger.LedgerLayout;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class WorkerMessageTest {
    private static final String READY = "{\"type\":\"ready\",\"pid\":7,\"backend\":\"software\",\"devices\":"
        + "[{\"name\":\"G\",\"uuid\":\"u\",\"totalBytes\":5,\"pciBusId\":\"0\",\"computeCapability\":\"9.0\"}]}";

    private static WorkerMessage parse(String json) throws WorkerMessage.MalformedException {
        return WorkerMessage.parse(json.getBytes(StandardCharsets.UTF_8));
    }

    @Test
    void shouldReadWhatWorkersSay() throws Exception {
        assertEquals(new WorkerMessage.Ready(7, "software", "",
            List.of(new Device("G", "u", 5, "0", "9.0"))),
            parse(READY));
        assertEquals(new WorkerMessage.Ended("left", false),
            parse("{\"type\":\"ended\",\"reason\":\"left\",\"error\":false}"));
        assertEquals(new WorkerMessage.Stats(new WorkerStats(1, 2, 3, 4, 5, 6, 0, 8, 9, 10)),
            parse("{\"type\":\"stats\",\"calls\":1,\"replies\":2,\"roundTrips\":3,\"bytesIn\":4,\"bytesOut\":5,"
                + "\"refusedRecords\":6,\"deviceBytes\":7,\"kernels\":8,\"gpuTimeMs\":9,\"waitedMs\":10}"),
            "the ledger counts memory, not the statistics");
        assertEquals(new WorkerMessage.SwappedOut(5, 6, "it has arrays"),
            parse("{\"type\":\"swappedout\",\"bytes\":5,\"ms\":6,\"stays\":\"it has arrays\"}"));
        assertEquals(new WorkerMessage.Carried(), parse("{\"type\":\"carried\",\"carrier\":\"rdma\"}"));
        for (String carrier : new String[] {"\"shm\"", "\"tcp\"", "\"\"", "7", "null"}) {
            assertThrows(WorkerMessage.MalformedException.class,
                () -> parse("{\"type\":\"carried\",\"carrier\":" + carrier + "}"));
        }
        assertEquals(new WorkerMessage.SwapMoved(0), parse("{\"type\":\"swapmoved\",\"bytes\":0}"));
        assertEquals(new WorkerMessage.Kept(7), parse("{\"type\":\"kept\",\"bytes\":7}"));
        assertEquals(new WorkerMessage.SwapFrozen(""), parse("{\"type\":\"swapfrozen\",\"stays\":\"\"}"));
        assertEquals(new WorkerMessage.ProcessMoved(7, 0, WorkerMessage.ProcessState.CHECKPOINTED, 9),
            parse("{\"type\":\"processmoved\",\"pid\":7,\"result\":0,\"state\":2,\"ms\":9}"));
        assertThrows(WorkerMessage.MalformedException.class,
            () -> parse("{\"type\":\"processmoved\",\"pid\":7,\"result\":0,\"state\":4,\"ms\":9}"));
        assertEquals(new WorkerMessage.MoveReady("", 7, true, 8),
            parse("{\"type\":\"moveready\",\"reason\":\"\",\"bytes\":7,\"socket\":true,\"stripes\":8}"));
        for (String fields : new String[] {"\"socket\":1,\"stripes\":0", "\"socket\":true,\"stripes\":9",
            "\"socket\":true,\"stripes\":-1"}) {
            assertThrows(WorkerMessage.MalformedException.class,
                () -> parse("{\"type\":\"moveready\",\"reason\":\"\",\"bytes\":7," + fields + "}"));
        }
        assertEquals(new WorkerMessage.MovedIn("other address", 9),
            parse("{\"type\":\"movedin\",\"reason\":\"other address\",\"ms\":9}"));
        assertThrows(WorkerMessage.MalformedException.class, () -> parse("{\"type\":\"swapmoved\",\"bytes\":-1}"));
        assertEquals(new WorkerMessage.SwappedIn(1L << 44, 0, ""), parse("{\"type\":\"swappedin\",\"bytes\":"
            + Long.MAX_VALUE + ",\"ms\":0,\"problem\":\"\"}"), "sums of amounts stay in a long");
    }

    @Test
    void shouldReadEachTypeThatWorkersSend() throws Exception {
        String fields = READY.substring(READY.indexOf(',')).replace("}]}", "}],\"calls\":1,\"replies\":2,"
            + "\"roundTrips\":3,\"bytesIn\":4,\"bytesOut\":5,\"refusedRecords\":6,\"kernels\":8,\"gpuTimeMs\":9,"
            + "\"waitedMs\":10,\"carrier\":\"rdma\",\"listener\":1,"
            + "\"result\":1,\"reason\":\"r\",\"error\":false,\"bytes\":5,\"column\":0,"
            + "\"chargedBytes\":5,\"passed\":false,\"socket\":false,\"stripes\":1,\"ms\":1,\"state\":0,\"sha256\":\""
            + "ab".repeat(32) + "\",\"name\":\""
            + "ab".repeat(16)
            + "\",\"handle\":\"" + "ab".repeat(64) + "\"}");
        Set<Class<?>> read = new HashSet<>();
        for (WorkerMessageType type : WorkerMessageType.values()) {
            read.add(parse("{\"type\":\"" + type.wireName() + "\"" + fields).getClass());
        }
        assertEquals(WorkerMessageType.values().length, read.size());
    }

    @Test
    void shouldRefuseEveryTruncation() {
        for (int length = 0; length < READY.length(); length++) {
            String part = READY.substring(0, length);
            assertThrows(WorkerMessage.MalformedException.class, () -> parse(part), part);
        }
    }

    @Test
    void shouldRefuseFieldsOfAnotherTypeOrRange() {
        for (String json : List.of("[]", "7", "null", "{}", "{\"type\":7}", "{\"type\":\"assign\"}",
            READY.replace(":7,", ":-7,"), READY.replace(":7,", ":7.5,"), READY.replace(":7,", ":99999999999999999999,"),
            READY.replace("\"G\"", "8"), READY.replace("[{", "{\"a\":{").replace("}]", "}}"),
            READY.replace("\"totalBytes\":5,", ""), "{\"type\":\"ended\",\"reason\":\"x\"}",
            "{\"type\":\"ended\",\"reason\":\"x\",\"error\":\"no\"}", "[".repeat(10_000))) {
            assertThrows(WorkerMessage.MalformedException.class, () -> parse(json), json);
        }
    }

    @Test
    void shouldReadWhatIsSaidOfImages() throws Exception {
        String digest = "0123456789abcdef".repeat(4);
        String named = "\"sha256\":\"" + digest + "\"}";
        assertEquals(new WorkerMessage.Image(digest, 5), parse("{\"type\":\"image\",\"bytes\":5," + named));
        assertEquals(new WorkerMessage.Stored(digest), parse("{\"type\":\"stored\"," + named));
        assertEquals(new WorkerMessage.Stored(""), parse("{\"type\":\"stored\",\"sha256\":\"\"}"));
        assertEquals(new WorkerMessage.Want(digest), parse("{\"type\":\"want\"," + named));
        assertEquals(new WorkerMessage.Unfit(digest), parse("{\"type\":\"unfit\"," + named));
        for (String json : List.of("{\"type\":\"image\"," + named, "{\"type\":\"image\",\"bytes\":0," + named,
            "{\"type\":\"image\",\"bytes\":1073741825," + named, "{\"type\":\"want\"}",
            "{\"type\":\"want\",\"sha256\":\"../../etc/passwd\"}", "{\"type\":\"unfit\",\"sha256\":\"\"}",
            "{\"type\":\"stored\",\"sha256\":\"" + digest.toUpperCase(Locale.ROOT) + "\"}")) {
            assertThrows(WorkerMessage.MalformedException.class, () -> parse(json), json);
        }
    }

    @Test
    void shouldReadWhatIsSaidOfMemory() throws Exception {
        String name = "0123456789abcdef".repeat(2);
        String handle = "fedcba9876543210".repeat(8);
        String named = "\"name\":\"" + name + "\"}";
        String share = "{\"type\":\"share\",\"bytes\":5,\"column\":63,\"chargedBytes\":8,\"passed\":false,"
            + "\"handle\":\"" + handle + "\"," + named;
        assertEquals(new WorkerMessage.Share(name, handle, 5, 63, 8, false), parse(share));
        assertTrue(((WorkerMessage.Share) parse(share.replace("false", "true"))).passed());
        String longest = "ab".repeat(WorkerMessage.MAX_HANDLE_CHARACTERS / 2);
        assertEquals(longest, ((WorkerMessage.Share) parse(share.replace(handle, longest))).handle());
        assertFalse(((WorkerMessage.Share) parse(share.replace(":5,", ":0,"))).isMemory(),
            "an event must have no memory");
        assertEquals(new WorkerMessage.Release(name), parse("{\"type\":\"release\"," + named));
        assertEquals(new WorkerMessage.Unshare(name), parse("{\"type\":\"unshare\"," + named));
        assertEquals(new WorkerMessage.Find(name), parse("{\"type\":\"find\"," + named));
        for (String json : List.of(share.replace(":5,", ":-5,"), share.replace(":63,", ":64,"),
            share.replace(":63,", ":-1,"), share.replace(":8,", ":-8,"), "{\"type\":\"release\"}",
            share.replace(handle, handle + "0"), share.replace(handle, longest + "00"),
            share.replace("false", "0"), share.replace("\"passed\":false,", ""), share.replace(handle, ""),
            share.replace(name, name + name),
            share.replace(name, name.toUpperCase(Locale.ROOT)), "{\"type\":\"find\"}",
            "{\"type\":\"find\",\"name\":\"\"}", "{\"type\":\"unshare\",\"name\":7}")) {
            assertThrows(WorkerMessage.MalformedException.class, () -> parse(json), json);
        }
    }

    /** Messages about memory, of which the bytes are changed, removed or repeated. */
    @ParameterizedTest
    @ValueSource(strings = {"share", "unshare", "release", "find"})
    void shouldReadOrRefuseEveryMutatedMessage(String type) throws Exception {
        byte[] whole = ("{\"type\":\"" + type + "\",\"bytes\":5,\"column\":63,\"chargedBytes\":8,\"passed\":false,"
            + "\"handle\":\"" + "fedcba9876543210".repeat(8) + "\",\"name\":\"" + "0123456789abcdef".repeat(2) + "\"}")
            .getBytes(StandardCharsets.UTF_8);
        Random random = new Random(type.hashCode());
        int read = 0;
        for (int i = 0; i < 20_000; i++) {
            byte[] message = random.nextInt(4) == 0 ? Arrays.copyOf(whole, random.nextInt(2 * whole.length))
                : whole.clone();
            for (int change = random.nextInt(4); change > 0 && message.length > 0; change--) {
                int at = random.nextInt(message.length);
                message[at] = random.nextBoolean() ? (byte) random.nextInt() : whole[random.nextInt(whole.length)];
            }
            try {
                WorkerMessage parsed = WorkerMessage.parse(message);
                read++;
                if (parsed instanceof WorkerMessage.Share share) {
                    assertTrue(share.name().matches("[0-9a-f]{32}") && share.bytes() >= 0 && share.chargedBytes() >= 0
                        && share.column() >= 0 && share.column() < LedgerLayout.MAX_COLUMNS
                        && share.handle().length() <= WorkerMessage.MAX_HANDLE_CHARACTERS, share::toString);
                }
            } catch (WorkerMessage.MalformedException e) {
                assertTrue(e.getMessage().length() < 2 * WorkerMessage.MAX_TEXT_CHARACTERS, e::getMessage);
            }
        }
        assertTrue(read > 1000, "the mutations must leave some messages whole: read=" + read);
    }

    @Test
    void shouldRefuseADescriptorThatNoProcessHas() throws Exception {
        assertEquals(new WorkerMessage.Jailed(65535), parse("{\"type\":\"jailed\",\"listener\":65535}"));
        for (String listener : List.of("65536", "-1", "4294967295", "4294967300", "9223372036854775807")) {
            assertThrows(WorkerMessage.MalformedException.class,
                () -> parse("{\"type\":\"jailed\",\"listener\":" + listener + "}"), listener);
        }
    }

    @Test
    void shouldRefuseAMessageThatIsNestedDeeply() {
        String deep = "{\"type\":\"ended\",\"reason\":\"x\",\"error\":true,\"more\":" + "[".repeat(20)
            + "]".repeat(20) + "}";
        assertThrows(WorkerMessage.MalformedException.class, () -> parse(deep));
    }

    @Test
    void shouldRefuseMoreDevicesThanAMachineHas() {
        String device = "{\"name\":\"G\",\"totalBytes\":5},";
        String json = "{\"type\":\"ready\",\"pid\":7,\"backend\":\"x\",\"devices\":[" + device.repeat(64)
            + "{\"name\":\"G\",\"totalBytes\":5}]}";
        assertThrows(WorkerMessage.MalformedException.class, () -> parse(json));
    }

    @Test
    void shouldMakeTextFitForLogs() throws Exception {
        String json = "{\"type\":\"ended\",\"reason\":\"a\\nb\\u001b[31m\\u202e\\u2028c\",\"error\":true}";
        assertEquals(new WorkerMessage.Ended("a?b?[31m??c", true), parse(json));
        WorkerMessage.Ended cut = (WorkerMessage.Ended) parse(
            "{\"type\":\"ended\",\"reason\":\"" + "x".repeat(5000) + "\",\"error\":true}");
        assertEquals(WorkerMessage.MAX_TEXT_CHARACTERS, cut.reason().length());
    }

    @Test
    void shouldNeverLetATotalShrink() {
        WorkerStats before = new WorkerStats(10, 10, 10, 10, 10, 10, 10, 10, 10, 10);
        assertEquals(new WorkerStats(10, 10, 11, 10, 10, 10, 0, 10, 12, 10),
            before.advance(new WorkerStats(1, 10, 11, 0, 5, 6, 3, 8, 12, 1)));
        assertEquals(1L << 53, before.advance(new WorkerStats(Long.MAX_VALUE, 0, 0, 0, 0, 0, 0, 0, 0, 0)).calls());
    }

    @Test
    void shouldSplitCommandsAtSpacesOutsideQuotes() {
        assertEquals(List.of("/opt/a b/java", "-cp", "x", ""), WorkerCommand.split(" \"/opt/a b/java\"  -cp x \"\" "));
        assertThrows(IllegalArgumentException.class, () -> WorkerCommand.split("java \"-cp"));
    }
}
