package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.fixture.TestVerbs;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Sessions over RDMA: their begin, copies by chunk, and guests that leave or break rules. */
@Timeout(300)
class MirrorTest {
    private static final int BYTES = 10_000;
    private static final int LAST = RecordLayout.MIRROR_CHUNKS - 1;

    private static long chunk(int chunk) {
        return RecordLayout.MIRROR_BULK_OFFSET + (long) chunk * RecordLayout.MIRROR_CHUNK_BYTES;
    }

    private static MemorySegment part(Rig rig, long offset) {
        return rig.mirror().end().mirror().asSlice(offset, BYTES);
    }

    private static void copy(Rig rig, int opcode, long device, long offset, long bytes, int chunk)
        throws IOException {
        rig.guest().send(opcode, Guest.CREDITED, device, offset, bytes, 0, chunk);
    }

    private static String reasonOfEnd(Rig rig) throws IOException {
        return rig.expect("ended").path("reason").asText();
    }

    @Test
    void shouldTellGuestAndBrokerThatRecordsGoByRdma() throws IOException {
        try (Rig rig = new Rig(Carrier.RDMA)) {
            rig.assign(0);
            rig.guest().next();
            assertEquals("", rig.mirror().refusal());
            assertEquals("rdma", rig.expect("carried").path("carrier").asText());
            rig.guest().createContext();
            rig.leave();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 5, LAST})
    void shouldCopyByChunksBothWays(int chunk) throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.RDMA)) {
            long memory = rig.guest().allocate(BYTES);
            long from = chunk(chunk);
            part(rig, from).copyFrom(MemorySegment.ofArray(Guest.random(BYTES)));
            rig.mirror().begin(chunk, 0, BYTES);
            copy(rig, CudaOpcodes.hwsCopyHtoDShared, memory, from, BYTES, chunk + 1);
            assertEquals(0, rig.mirror().await(chunk));
            part(rig, from).fill((byte) 0);
            long to = chunk(chunk) + RecordLayout.MIRROR_CHUNK_BYTES - BYTES;
            part(rig, to).fill((byte) 0);
            rig.mirror().begin(chunk, 0, 0);
            copy(rig, CudaOpcodes.hwsCopyDtoHShared, memory, to, BYTES, chunk + 1);
            assertEquals(0, rig.mirror().await(chunk));
            assertArrayEquals(Guest.random(BYTES), part(rig, to).toArray(ValueLayout.JAVA_BYTE));
            rig.leave();
        }
    }

    @Test
    void shouldReturnChunkOfCopyThatFails() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.RDMA)) {
            rig.mirror().begin(0, 0, 0);
            copy(rig, CudaOpcodes.hwsCopyHtoDShared, 1, chunk(0), BYTES, 1);
            assertTrue(rig.mirror().await(0) > 0);
        }
    }

    @Test
    void shouldRefuseBytesOutsideTheChunk() throws IOException {
        for (long[] wrong : List.of(new long[] {chunk(0) - 1, 1}, new long[] {chunk(1), 1},
            new long[] {RecordLayout.MIRROR_REPLY_OFFSET, 1}, new long[] {-1, 1},
            new long[] {Long.MAX_VALUE, Long.MAX_VALUE}, new long[] {chunk(0), 2}, new long[] {0, 0})) {
            try (Rig rig = Rig.withGuest(Carrier.RDMA)) {
                long memory = rig.guest().allocate(2L * RecordLayout.MIRROR_CHUNK_BYTES);
                long bytes = wrong[1] == 2 ? RecordLayout.MIRROR_CHUNK_BYTES + 1L : BYTES;
                copy(rig, CudaOpcodes.hwsCopyHtoDShared, memory, wrong[0], bytes, (int) Math.min(1, wrong[1]));
                String reason = reasonOfEnd(rig);
                assertTrue(reason.contains("must lie in its heap or its chunk"), reason);
            }
        }
    }

    @Test
    void shouldSleepWhileGuestIsIdle() throws IOException, InterruptedException {
        try (Rig rig = Rig.withGuest(Carrier.RDMA)) {
            long thread = Thread.getAllStackTraces().keySet().stream().filter(each -> each.getName().equals("session"))
                .findFirst().orElseThrow().threadId();
            long before = ManagementFactory.getThreadMXBean().getThreadCpuTime(thread);
            Thread.sleep(1000); // the test measures processor time, not elapsed time
            long usedNs = ManagementFactory.getThreadMXBean().getThreadCpuTime(thread) - before;
            assertTrue(usedNs < 200_000_000, () -> "usedNs=" + usedNs);
            rig.leave();
        }
    }

    @Test
    void shouldServeWhatGuestSentBeforeItDied() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.RDMA)) {
            rig.guest().allocate(BYTES);
            rig.guest().kill();
            JsonNode ended = rig.expect("ended");
            assertEquals("the guest has closed the connection", ended.path("reason").asText());
            assertTrue(rig.join());
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    @Test
    void shouldEndSessionOfGuestThatSendsOnItsConnection() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.RDMA)) {
            rig.mirror().connection().write(new byte[] {0});
            assertEquals("the guest must send nothing on its connection while its records go by RDMA",
                reasonOfEnd(rig));
        }
    }

    @Test
    void shouldEndSessionOfGuestWhoseTailIsBeyondTheRing() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.RDMA)) {
            long ring = RecordLayout.MIRROR_RING_BYTES;
            assertEquals(0, rig.mirror().end().sendTail(3 * ring - 8, 3 * ring));
            String reason = reasonOfEnd(rig);
            assertTrue(reason.contains("a writer's tail must be a multiple of 8 within the ring"), reason);
        }
    }

    private static void assertStaysOnTcp(Rig rig, String reason, UnaryOperator<String> change) throws IOException {
        rig.assignOffer(0, change);
        rig.guest().next();
        assertTrue(rig.mirror().refusal().contains(reason), rig.mirror().refusal());
        rig.guest().createContext();
        long memory = rig.guest().allocate(BYTES);
        rig.guest().write(memory, 0, Guest.random(BYTES));
        assertArrayEquals(Guest.random(BYTES), rig.guest().read(memory, BYTES, 0));
        rig.leave();
    }

    @Test
    void shouldStayOnTcpWhereVgpuForbidsRdma() throws IOException {
        try (Rig rig = new Rig(Carrier.RDMA)) {
            assertStaysOnTcp(rig, "the vGPU does not", fields -> fields.replace("null", "\"the vGPU does not\""));
        }
    }

    @Test
    void shouldStayOnTcpWhereOfferIsNoEnd() throws IOException {
        try (Rig rig = new Rig(Carrier.RDMA)) {
            assertStaysOnTcp(rig, "", fields -> ",\"rdma\":\"" + "ff".repeat(RecordLayout.RDMA_END_BYTES) + "\"");
        }
    }

    @Test
    void shouldStayOnTcpWhereWorkerHasNoDevice() throws IOException {
        assumeTrue(TestVerbs.isAvailable(), "needs the library of verbs for tests");
        try (Rig rig = new Rig(Carrier.TCP)) {
            assertStaysOnTcp(rig, "the worker has no RDMA device", UnaryOperator.identity());
        }
    }
}
