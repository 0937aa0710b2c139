package io.hawser.broker.model;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class GpuChoiceTest {
    private static final Device FIRST = device("aaaaaaaa-0000-4000-8000-000000000001");
    private static final Device SECOND = device("abbbbbbb-0000-4000-8000-000000000002");
    private static final List<Device> BOTH = List.of(FIRST, SECOND);

    private static Device device(String uuid) {
        return new Device("GPU", uuid, 1000, "", "");
    }

    @Test
    void shouldGiveAllOrTheListInItsOrder() throws GpuChoice.NoGpuException {
        assertEquals(BOTH, GpuChoice.parse("all").named(BOTH));
        assertEquals(List.of(SECOND, FIRST), GpuChoice.parse("1, 0").named(BOTH));
        assertEquals(List.of(SECOND), GpuChoice.parse("GPU-ABBB").named(BOTH));
        assertEquals(List.of(FIRST), GpuChoice.parse(FIRST.uuid()).named(BOTH));
    }

    @ParameterizedTest
    @ValueSource(strings = {"2", "0,0", "gpu-cccc", "0,aaaaaaaa", "1234"})
    void shouldRefuseGpusThatDoNotExistOrAreNamedTwice(String list) {
        GpuChoice.NoGpuException none = assertThrows(GpuChoice.NoGpuException.class,
            () -> GpuChoice.parse(list).named(BOTH));
        assertTrue(none.getMessage().contains("one that exists, named once"), none.getMessage());
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "none", "0,", "-1", "0;1", "GPU-", "GPU-xyz", "../../etc"})
    void shouldRefuseWhatIsNoList(String text) {
        assertThrows(IllegalArgumentException.class, () -> GpuChoice.parse(text));
    }
}
