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

class SharesOptionsTest {
    private static List<String> names(SharesOptions options) {
        return options.sets().stream().map(ShareSet::name).toList();
    }

    @Test
    void shouldMeasureAllSetsByDefault() throws UsageException {
        SharesOptions options = SharesOptions.parse();
        assertEquals(
            List.of("equal2", "equal4", "equal8", "equal16", "loops8", "tail8", "weights", "weightloops",
                "copies3", "weightcopies", "weightmixed", "greedy",
                "mixed"),
            names(options));
        assertEquals(List.of(3, 10, 200, 1500),
            List.of(options.seconds(), options.warmUpS(), options.kernelUs(), options.greedyMs()));
        assertEquals(Optional.empty(), options.ways());
        assertEquals("auto", options.backend());
        assertFalse(options.help() || options.markdown() || options.keep());
    }

    @Test
    void shouldTakeEachOption() throws UsageException {
        SharesOptions options = SharesOptions.parse("--seconds", "2", "--warm-up", "0", "--kernel-us", "20",
            "--greedy-ms", "9", "--ways", "tcp,shm", "--sets", "weights,equal2", "--backend", "software", "--setting",
            "hawser.turns.mode=on", "--setting", "hawser.vgpus.t1.compute-share=7", "--json", "f", "--markdown",
            "--keep");
        assertEquals(List.of(2, 0, 20, 9),
            List.of(options.seconds(), options.warmUpS(), options.kernelUs(), options.greedyMs()));
        assertEquals(Optional.of(Set.of(Way.SHM, Way.TCP)), options.ways());
        assertEquals(List.of("equal2", "weights"), names(options));
        assertEquals("software", options.backend());
        assertEquals(List.of("hawser.turns.mode=on", "hawser.vgpus.t1.compute-share=7"), options.settings());
        assertEquals(Optional.of(Path.of("f")), options.json());
        assertTrue(options.markdown() && options.keep());
    }

    @ParameterizedTest
    @ValueSource(strings = {"--wrong", "--seconds", "--seconds 0", "--seconds x", "--warm-up -1", "--kernel-us 0",
        "--greedy-ms 0", "--ways rdma", "--ways ,", "--ways native --backend software", "--sets equal3", "--sets ,",
        "--backend amd", "--setting hawser.pool", "--setting quarkus.http.port=1", "--json", "equal2"})
    void shouldRefuseAWrongCommandLineInOneLine(String line) {
        UsageException e = assertThrows(UsageException.class, () -> SharesOptions.parse(line.split(" ")));
        assertEquals(1, e.getMessage().lines().count());
    }
}
