package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SwapsOptionsTest {
    private static final SwapsOptions.Load SOFTWARE =
        new SwapsOptions.Load(100, 3, 30, 3, "7230M", "512M", "1s", 4, 16, "3000M");
    private static final SwapsOptions.Load NVIDIA =
        new SwapsOptions.Load(40_000, 8, 480, 3, "84G", "84G", "10s", 30, 2048, "20G");

    @Test
    void shouldChooseTheLoadByTheGpu() throws UsageException {
        for (SwapsOptions options : List.of(SwapsOptions.parse(false), SwapsOptions.parse(true, "--backend",
            "software"))) {
            assertEquals(SOFTWARE, options.load());
            assertEquals("software", options.backend());
            assertEquals(120, options.limitS());
            assertEquals(List.of("hawser.swap.stay=0.2s"), options.settings());
        }
        for (SwapsOptions options : List.of(SwapsOptions.parse(true), SwapsOptions.parse(false, "--backend",
            "nvidia"))) {
            assertEquals(NVIDIA, options.load());
            assertEquals("nvidia", options.backend());
            assertEquals(300, options.limitS());
            assertEquals(List.of("hawser.swap.stay=1s"), options.settings());
        }
    }

    @Test
    void shouldKeepGivenValuesWhateverTheOrder() throws UsageException {
        SwapsOptions options = SwapsOptions.parse(false, "--rounds", "7", "--backend", "nvidia");
        assertEquals(7, options.load().rounds());
        assertEquals(40_000, options.load().mib());
    }

    @Test
    void shouldMakeOnlyTheVgpusThatTheSetsNeed() throws UsageException {
        SwapsOptions all = SwapsOptions.parse(false, "--tenants", "5");
        assertEquals(5, all.tenants());
        assertEquals(4, all.notebooks());
        assertEquals(2, SwapsOptions.parse(false, "--tenants", "5", "--sets", "notebooks,exchange").tenants());
        assertEquals(0, SwapsOptions.parse(false, "--sets", "series").notebooks());
    }

    @Test
    void shouldTakeEachOption() throws UsageException {
        SwapsOptions options = SwapsOptions.parse(false, "--carrier", "tcp", "--sets", "series", "--mib", "1",
            "--blocks", "2", "--rounds", "3", "--tenants", "4", "--memory", "5G", "--swap-memory", "6M", "--turn",
            "0.7s", "--notebooks", "8", "--notebook-mib", "9", "--notebook-memory", "10G", "--limit", "11",
            "--setting", "hawser.swap.stay=3s", "--json", "f", "--markdown", "--keep");
        assertEquals(new SwapsOptions.Load(1, 2, 3, 4, "5G", "6M", "0.7s", 8, 9, "10G"), options.load());
        assertEquals(Way.TCP, options.carrier());
        assertEquals(Set.of("series"), options.sets());
        assertEquals(11, options.limitS());
        assertEquals(List.of("hawser.swap.stay=0.2s", "hawser.swap.stay=3s"), options.settings()); // the last wins
        assertEquals(Optional.of(Path.of("f")), options.json());
        assertTrue(options.markdown() && options.keep());
        assertFalse(options.help());
    }

    @ParameterizedTest
    @ValueSource(strings = {"--wrong", "--mib", "--mib 0", "--blocks 1025", "--rounds x", "--tenants 1",
        "--memory much", "--swap-memory 84GB", "--turn 10", "--notebooks 0", "--limit 0", "--carrier native",
        "--carrier shm,tcp", "--sets swaps", "--backend amd", "--setting hawser.pool", "series"})
    void shouldRefuseAWrongCommandLineInOneLine(String line) {
        UsageException e = assertThrows(UsageException.class, () -> SwapsOptions.parse(false, line.split(" ")));
        assertEquals(1, e.getMessage().lines().count());
    }
}
