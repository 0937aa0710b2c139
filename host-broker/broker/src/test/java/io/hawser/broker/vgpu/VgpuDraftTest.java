package io.hawser.broker.vgpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Communication;
import io.hawser.broker.model.Labels;
import io.hawser.broker.model.Origin;
import io.hawser.broker.model.Owner;
import io.hawser.broker.model.Sharing;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class VgpuDraftTest {
    private static final Instant NOW = Instant.parse("2026-01-01T00:00:00Z");
    private static final VgpuDraft NOTHING = new VgpuDraft(null, null, null, null, null, null, null, null);

    private static void assertInvalid(String rule, VgpuDraft draft) {
        VgpuException refused = assertThrows(VgpuException.class, () -> draft.create("v", Origin.REST, NOW));
        assertEquals(VgpuException.Kind.INVALID, refused.kind());
        assertTrue(refused.getMessage().contains(rule), refused.getMessage());
    }

    @Test
    void shouldHaveDefaults() throws VgpuException {
        Vgpu vgpu = NOTHING.create("v", Origin.REST, NOW);
        assertEquals(0, vgpu.memoryBytes());
        assertEquals(100, vgpu.computeShare());
        assertEquals(Sharing.SHARED, vgpu.mode());
        assertEquals("any", vgpu.gpus().toString());
        assertEquals(Set.of(Carrier.TCP, Carrier.SHM), vgpu.carriers());
        assertEquals(Owner.NONE, vgpu.owner());
        assertFalse(vgpu.swappable());
        assertFalse(vgpu.rdma());
    }

    @Test
    void shouldChangeOnlyWhatIsGiven() throws VgpuException {
        Vgpu before = new VgpuDraft(Owner.Kind.DOMAIN, "a-uuid", 7L, 20, "exclusive", "1,0", List.of("shm"), 3,
            "host", null).create("v", Origin.REST, NOW);
        Vgpu after = new VgpuDraft(null, null, null, 30, null, null, null, null).change(before, NOW.plusSeconds(1));
        assertEquals(new Vgpu("v", before.id(), new Owner(Owner.Kind.DOMAIN, "a-uuid"), 7, 30, Sharing.EXCLUSIVE,
            before.gpus(), Set.of(Carrier.SHM), 3, Communication.HOST, false, false, null, Labels.NONE, Origin.REST,
            NOW, NOW.plusSeconds(1)), after);
        assertEquals(Owner.NONE, new VgpuDraft(Owner.Kind.NONE, null, null, null, null, null, null, null)
            .change(before, NOW).owner());
    }

    @Test
    void shouldKeepChangeAndRemoveAnExpiry() throws VgpuException {
        VgpuDraft draft = NOTHING.expiring(NOW.plusSeconds(5)).labelled(Map.of("job", "1"));
        Vgpu vgpu = draft.create("v", Origin.REST, NOW);
        assertEquals(NOW.plusSeconds(5), vgpu.expires());
        // A change of something else is possible after the expiry, before the deletion.
        Vgpu kept = NOTHING.change(vgpu, NOW.plusSeconds(6));
        assertEquals(NOW.plusSeconds(5), kept.expires());
        assertEquals(Map.of("job", "1"), kept.labels().map());
        assertNull(NOTHING.expiring(VgpuDraft.NEVER).change(vgpu, NOW).expires());
        assertEquals(Map.of(), NOTHING.labelled(Map.of()).change(vgpu, NOW).labels().map());
        assertInvalid("must expire in the future", NOTHING.expiring(NOW));
        assertInvalid("in at most 36500 days", NOTHING.expiring(NOW.plusSeconds(4_000_000_000L)));
        assertInvalid("the key of a label", NOTHING.labelled(Map.of("Job", "1")));
    }

    private static VgpuDraft swappable(Long memoryBytes, String mode, String gpus, String communication) {
        return new VgpuDraft(null, null, memoryBytes, null, mode, gpus, null, null, communication, true);
    }

    @Test
    void shouldMakeSwappableVgpusOfOneGpu() throws VgpuException {
        for (String gpus : new String[] {null, "any", "0", "GPU-aaaaaaaa"}) {
            Vgpu vgpu = swappable(1L, null, gpus, null).create("v", Origin.REST, NOW);
            assertTrue(vgpu.swappable(), gpus);
            assertTrue(NOTHING.change(vgpu, NOW).swappable(), "an omitted field must keep its value");
            assertFalse(new VgpuDraft(null, null, 0L, null, null, null, null, null, "host", false).change(vgpu, NOW)
                .swappable());
        }
    }

    @Test
    void shouldRefuseSwappableVgpusWhoseMemoryCannotMove() throws VgpuException {
        assertInvalid("a swappable vGPU must reserve memory: memoryBytes=0 vgpu=v", swappable(null, null, null, null));
        assertInvalid("a swappable vGPU must be shared: mode=exclusive vgpu=v", swappable(1L, "exclusive", null, null));
        assertInvalid("a swappable vGPU must have one GPU: gpus=all vgpu=v", swappable(1L, null, "all", null));
        assertInvalid("a swappable vGPU must have one GPU: gpus=0,1 vgpu=v", swappable(1L, null, "0,1", null));
        assertInvalid("a swappable vGPU must have no communication: communication=host vgpu=v",
            swappable(1L, null, null, "host"));
        Vgpu vgpu = swappable(1L, null, null, null).create("v", Origin.REST, NOW);
        VgpuException refused = assertThrows(VgpuException.class,
            () -> new VgpuDraft(null, null, 0L, null, null, null, null, null).change(vgpu, NOW));
        assertTrue(refused.getMessage().contains("must reserve memory"), refused.getMessage());
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "-a", ".a", "a b", "a/b", "a,b", "a\n", "ä",
        "a123456789012345678901234567890123456789012345678901234567890123"})
    void shouldRefuseNamesThatAreNone(String name) {
        assertThrows(VgpuException.class, () -> NOTHING.create(name, Origin.REST, NOW));
    }

    @Test
    void shouldRefuseWhatCanNeverBe() {
        assertThrows(VgpuException.class, () -> NOTHING.create(null, Origin.REST, NOW));
        assertInvalid("memoryBytes must be 0..", new VgpuDraft(null, null, -1L, null, null, null, null, null));
        assertInvalid("memoryBytes", new VgpuDraft(null, null, Long.MAX_VALUE, null, null, null, null, null));
        assertInvalid("computeShare must be 1..100", new VgpuDraft(null, null, null, 0, null, null, null, null));
        assertInvalid("computeShare must be 1..100", new VgpuDraft(null, null, null, 101, null, null, null, null));
        assertInvalid("mode must be one of shared, exclusive", new VgpuDraft(null, null, null, null, "Shared", null,
            null, null));
        assertInvalid("GPUs must be any, all", new VgpuDraft(null, null, null, null, null, "two", null, null));
        assertInvalid("at most 2048 characters", new VgpuDraft(null, null, null, null, null, "1,".repeat(1500) + "1",
            null, null));
        assertInvalid("carrier=rdma", new VgpuDraft(null, null, null, null, null, null, List.of("rdma"), null));
        assertInvalid("carriers must not be empty", new VgpuDraft(null, null, null, null, null, null, List.of(),
            null));
        assertInvalid("maxSessions must be 0..", new VgpuDraft(null, null, null, null, null, null, null, -1));
        assertInvalid("communication must be one of none, host", new VgpuDraft(null, null, null, null, null, null, null,
            null, "all", null));
        assertInvalid("an owner must be", new VgpuDraft(Owner.Kind.HOST, null, null, null, null, null, null, null));
        assertInvalid("an owner must be", new VgpuDraft(Owner.Kind.NONE, "x", null, null, null, null, null, null));
        assertInvalid("an owner must be", new VgpuDraft(Owner.Kind.HOST, "x".repeat(257), null, null, null, null,
            null, null));
        for (String id : List.of("a\nb", "\u0000", "a\u001b[31m", "\u0085")) { // would forge lines of logs
            assertInvalid("an owner must be", new VgpuDraft(Owner.Kind.HOST, id, null, null, null, null, null, null));
        }
    }
}
