package io.hawser.worker.control;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.hawser.shm.control.BrokerMessageType;
import io.hawser.shm.control.WorkerMessageType;
import io.hawser.worker.channel.shm.SharedRegion;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class ControlCodecTest {
    private final ControlCodec codec = new ControlCodec();

    private BrokerMessage decode(String json) throws IOException {
        return codec.decode(json.getBytes(StandardCharsets.UTF_8));
    }

    @Test
    void shouldReadMessagesOfBroker() throws IOException {
        assertEquals(new BrokerMessage.Assign(7, "v", 1024, "p", "x", List.of(), null), decode(
            "{\"type\":\"assign\",\"sessionId\":7,\"vgpu\":\"v\",\"memoryBytes\":1024,\"peer\":\"p\","
                + "\"program\":\"x\"}"));
        assertEquals(new BrokerMessage.Assign(7, "v", 1024, "p", "x", List.of("ab"),
            new SharedRegion.Place(1 << 20, 4, 3, 1, 4096)),
            decode("{\"type\":\"assign\",\"sessionId\":7,\"vgpu\":\"v\",\"memoryBytes\":1024,\"peer\":\"p\","
                + "\"images\":[\"ab\"],\"program\":\"x\",\"carrier\":\"shm\","
                + "\"regionBytes\":1048576,\"slotCount\":4,\"slot\":3,\"kind\":1,"
                + "\"mapAddress\":4096,\"epoch\":-5}"));
        assertEquals(new BrokerMessage.Assign(7, "v", 1024, "p", "x", List.of(), null, "00ff", "why", false), decode(
            "{\"type\":\"assign\",\"sessionId\":7,\"vgpu\":\"v\",\"memoryBytes\":1024,\"peer\":\"p\","
                + "\"program\":\"x\",\"rdma\":\"00ff\",\"rdmaRefusal\":\"why\"}"));
        assertEquals(new BrokerMessage.Assign(7, "v", 1024, "p", "x", List.of(), null, "00ff", null, true), decode(
            "{\"type\":\"assign\",\"sessionId\":7,\"vgpu\":\"v\",\"memoryBytes\":1024,\"peer\":\"p\","
                + "\"program\":\"x\",\"rdma\":\"00ff\",\"rdmaRefusal\":null,\"mayLeave\":true}"));
        assertEquals(new BrokerMessage.MoveOut(""), decode("{\"type\":\"moveout\"}"));
        assertEquals(new BrokerMessage.MoveOut("h:1"), decode("{\"type\":\"moveout\",\"address\":\"h:1\"}"));
        assertEquals(new BrokerMessage.MoveStream(), decode("{\"type\":\"movestream\"}"));
        assertEquals(new BrokerMessage.Doorbell(), decode("{\"type\":\"doorbell\"}"));
        assertEquals(new BrokerMessage.Store("cd"), decode("{\"type\":\"store\",\"sha256\":\"cd\",\"bytes\":1}"));
        assertEquals(new BrokerMessage.Image("cd", 9), decode("{\"type\":\"image\",\"sha256\":\"cd\",\"bytes\":9}"));
        assertEquals(new BrokerMessage.NoImage("cd"), decode("{\"type\":\"noimage\",\"sha256\":\"cd\"}"));
        assertEquals(new BrokerMessage.Shared("ef", true),
            decode("{\"type\":\"shared\",\"name\":\"ef\",\"kept\":true}"));
        assertEquals(new BrokerMessage.Found("ef", "aa", 3, 4),
            decode("{\"type\":\"found\",\"name\":\"ef\",\"handle\":\"aa\",\"bytes\":3,\"column\":4}"));
        assertEquals(new BrokerMessage.NotFound("ef"), decode("{\"type\":\"notfound\",\"name\":\"ef\"}"));
        assertEquals(new BrokerMessage.Keep(9, 8), decode("{\"type\":\"keep\",\"maxBytes\":9,\"aheadBytes\":8}"));
        assertEquals(new BrokerMessage.Keeper(true), decode("{\"type\":\"keeper\",\"out\":true}"));
        assertEquals(new BrokerMessage.SwapFreeze(true), decode("{\"type\":\"swapfreeze\",\"frozen\":true}"));
        assertEquals(new BrokerMessage.Checkpoint(7, 8), decode("{\"type\":\"checkpoint\",\"pid\":7,\"bytes\":8}"));
        assertEquals(new BrokerMessage.Restore(7), decode("{\"type\":\"restore\",\"pid\":7}"));
        assertEquals(new BrokerMessage.End("why"), decode("{\"type\":\"end\",\"reason\":\"why\"}"));
        assertNull(decode("{\"type\":\"fromTheFuture\"}"));
    }

    @Test
    void shouldRefuseInvalidMessages() {
        for (String json : new String[] {"", "[]", "{}", "{\"type\":5", "{\"type\":\"assign\"}",
            "{\"type\":\"assign\",\"sessionId\":-1,\"memoryBytes\":0}",
            "{\"type\":\"assign\",\"sessionId\":\"7\",\"memoryBytes\":0}",
            "{\"type\":\"assign\",\"sessionId\":1,\"memoryBytes\":0,\"carrier\":\"pigeon\"}",
            "{\"type\":\"assign\",\"sessionId\":1,\"memoryBytes\":0,\"carrier\":\"shm\"}",
            "{\"type\":\"assign\",\"sessionId\":1.5,\"memoryBytes\":0}", "7", "\"assign\"", "null",
            "{\"type\":\"assign\",\"sessionId\":1,\"memoryBytes\":0,\"carrier\":\"shm\",\"regionBytes\":1048576,"
                + "\"slotCount\":4294967297,\"slot\":3,\"kind\":1}",
            "{\"type\":\"assign\",\"sessionId\":1,\"memoryBytes\":0,\"carrier\":\"shm\",\"regionBytes\":1048576,"
                + "\"slotCount\":4,\"slot\":2147483648,\"kind\":1}",
            "{\"type\":\"restore\"}", "{\"type\":\"checkpoint\",\"pid\":4294967297,\"bytes\":0}",
            "{\"type\":\"ledger\",\"slots\":-1,\"slot\":0}"}) {
            assertThrows(IOException.class, () -> decode(json), json);
        }
    }

    @Test
    void shouldWriteMessagesForBroker() {
        assertEquals("{\"type\":\"ended\",\"reason\":\"r\",\"error\":true}",
            new String(codec.encode(new WorkerMessage.Ended("r", true)), StandardCharsets.UTF_8));
        assertEquals("{\"type\":\"lost\",\"result\":700}",
            new String(codec.encode(new WorkerMessage.Lost(700)), StandardCharsets.UTF_8));
        assertEquals("{\"type\":\"ready\",\"pid\":5,\"backend\":\"b\",\"jail\":\"j\",\"devices\":[{\"name\":\"n\","
            + "\"uuid\":\"u\",\"totalBytes\":9,\"pciBusId\":\"p\",\"computeCapability\":\"8.0\"}]}",
            new String(codec.encode(new WorkerMessage.Ready(5, "b", "j",
                List.of(new WorkerMessage.Device("n", "u", 9, "p", "8.0")))), StandardCharsets.UTF_8));
        assertEquals("{\"type\":\"stats\",\"calls\":1,\"replies\":2,\"roundTrips\":3,\"bytesIn\":4,\"bytesOut\":5,"
            + "\"refusedRecords\":6,\"deviceBytes\":7,\"kernels\":8,"
            + "\"gpuTimeMs\":9,\"waitedMs\":10}",
            new String(codec.encode(new WorkerMessage.Stats(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)), StandardCharsets.UTF_8));
    }

    @Test
    void shouldReadEachTypeThatTheBrokerSends() throws IOException {
        for (BrokerMessageType type : BrokerMessageType.values()) {
            assertNotNull(decode("{\"type\":\"" + type.wireName() + "\",\"sessionId\":1,\"memoryBytes\":0,"
                + "\"pid\":1,\"bytes\":1,\"slots\":1,\"slot\":0,\"column\":0,\"maxBytes\":1,\"aheadBytes\":0,"
                + "\"pair\":1}"),
                type.wireName());
        }
    }

    @Test
    void shouldWriteEachTypeThatTheBrokerReads() throws IOException {
        List<WorkerMessage> all = List.of(new WorkerMessage.Ready(5, "b", "j", List.of()),
            new WorkerMessage.Jailed(3, "b"), new WorkerMessage.Stats(1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
            new WorkerMessage.Lost(700), new WorkerMessage.Ended("r", true), new WorkerMessage.Image("ab", 1),
            new WorkerMessage.Stored("ab"), new WorkerMessage.Want("ab"), new WorkerMessage.Unfit("ab"),
            new WorkerMessage.Share("n", "h", 1, 0, 1, true),
            new WorkerMessage.Unshare("n"), new WorkerMessage.Find("n"),
            new WorkerMessage.Release("n"), new WorkerMessage.SwappedOut(1, 2, ""),
            new WorkerMessage.SwappedIn(1, 2, ""), new WorkerMessage.SwapWanted(),
            new WorkerMessage.SwapMoved(1), new WorkerMessage.Kept(1), new WorkerMessage.SwapFrozen(""),
            new WorkerMessage.ProcessMoved(1, 0, 2, 3), new WorkerMessage.Carried("rdma"),
            new WorkerMessage.MoveReady("", 1, true, 2), new WorkerMessage.MovedIn("", 1));
        List<String> written = new ArrayList<>();
        for (WorkerMessage message : all) {
            written.add(new ObjectMapper().readTree(codec.encode(message)).path("type").asText());
        }
        assertEquals(Stream.of(WorkerMessageType.values()).map(WorkerMessageType::wireName).toList(), written);
        assertEquals(WorkerMessage.class.getPermittedSubclasses().length, all.size());
    }

    @Test
    void shouldReadTheMessagesOfARehearsal() throws IOException {
        SharedRegion.Place slot = new SharedRegion.Place(1 << 20, 4, 3, 1, 4096);
        for (SharedRegion.Place place : new SharedRegion.Place[] {null, slot}) {
            BrokerMessage.Assign assign = new BrokerMessage.Assign(7, "v", 1024, "p", "x", List.of("ab"), place);
            assertEquals(assign, codec.decode(codec.encode(assign)));
        }
        BrokerMessage.Ledger ledger = new BrokerMessage.Ledger(2, 1, List.of("a", "b"), List.of(5L, 6L));
        assertEquals(ledger, codec.decode(codec.encode(ledger)));
        assertEquals(new BrokerMessage.Watching(), codec.decode(codec.encode(BrokerMessageType.WATCHING)));
    }
}
