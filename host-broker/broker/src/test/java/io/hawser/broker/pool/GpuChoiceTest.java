package io.hawser.broker.pool;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class GpuChoiceTest {
    private static final WorkerMessage.Device FIRST = device("aaaaaaaa-0000-4000-8000-000000000001");
    private static final WorkerMessage.Device SECOND = device("abbbbbbb-0000-4000-8000-000000000002");
    private static final List<WorkerMessage.Device> BOTH = List.of(FIRST, SECOND);
    private static final GpuChoice.Load IDLE = new GpuChoice.Load(0, 0, false);
    private static final Function<WorkerMessage.Device, GpuChoice.Load> NOTHING = device -> IDLE;

    private static WorkerMessage.Device device(String uuid) {
        return new WorkerMessage.Device("GPU", uuid, 1000, "", "");
    }

    private static Function<WorkerMessage.Device, GpuChoice.Load> loads(GpuChoice.Load first, GpuChoice.Load second) {
        return Map.of(FIRST, first, SECOND, second)::get;
    }

    @Test
    void shouldTakeTheLeastUsedOfAny() throws GpuChoice.NoGpuException {
        assertEquals(List.of(FIRST), GpuChoice.ANY.choose(BOTH, 0, NOTHING));
        assertEquals(List.of(SECOND), GpuChoice.ANY.choose(BOTH, 0, loads(new GpuChoice.Load(2, 0, false),
            new GpuChoice.Load(1, 900, false))));
        assertEquals(List.of(SECOND), GpuChoice.ANY.choose(BOTH, 0, loads(new GpuChoice.Load(1, 500, false),
            new GpuChoice.Load(1, 100, false))));
    }

    @Test
    void shouldTakeWhereWorkersStartAndMemoryIsLeft() throws GpuChoice.NoGpuException {
        assertEquals(List.of(SECOND), GpuChoice.ANY.choose(BOTH, 0, loads(new GpuChoice.Load(0, 0, true),
            new GpuChoice.Load(5, 0, false))));
        assertEquals(List.of(SECOND), GpuChoice.ANY.choose(BOTH, 600, loads(new GpuChoice.Load(0, 500, false),
            new GpuChoice.Load(5, 300, false))));
        GpuChoice.NoGpuException full = assertThrows(GpuChoice.NoGpuException.class, () -> GpuChoice.ANY.choose(BOTH,
            600, loads(new GpuChoice.Load(0, 500, false), new GpuChoice.Load(5, 401, false))));
        assertEquals("the GPU's memory is all reserved: wantedBytes=600 freeBytes=599", full.getMessage());
    }

    @Test
    void shouldGiveAllOrTheListInItsOrder() throws GpuChoice.NoGpuException {
        assertEquals(BOTH, GpuChoice.parse("all").choose(BOTH, 0, NOTHING));
        assertEquals(List.of(SECOND, FIRST), GpuChoice.parse("1, 0").choose(BOTH, 0, NOTHING));
        assertEquals(List.of(SECOND), GpuChoice.parse("GPU-ABBB").choose(BOTH, 0, NOTHING));
        assertEquals(List.of(FIRST), GpuChoice.parse(FIRST.uuid()).choose(BOTH, 0, NOTHING));
        assertThrows(GpuChoice.NoGpuException.class, () -> GpuChoice.parse("all").choose(BOTH, 600,
            loads(IDLE, new GpuChoice.Load(1, 500, false))));
    }

    @ParameterizedTest
    @ValueSource(strings = {"2", "0,0", "gpu-cccc", "0,aaaaaaaa", "1234"})
    void shouldRefuseGpusThatDoNotExistOrAreNamedTwice(String list) {
        GpuChoice.NoGpuException none = assertThrows(GpuChoice.NoGpuException.class,
            () -> GpuChoice.parse(list).choose(BOTH, 0, NOTHING));
        assertTrue(none.getMessage().contains("one that exists, named once"), none.getMessage());
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "none", "0,", "-1", "0;1", "GPU-", "GPU-xyz", "../../etc"})
    void shouldRefuseWhatIsNoList(String text) {
        assertThrows(IllegalArgumentException.class, () -> GpuChoice.parse(text));
    }
}
