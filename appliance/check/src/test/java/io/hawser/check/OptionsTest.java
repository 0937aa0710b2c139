package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class OptionsTest {
    @Test
    void shouldCheckEverythingWithoutArguments() throws UsageException {
        Options options = Options.parse();
        assertTrue(options.runPrograms() && options.benchmarks());
        assertEquals(EnumSet.of(Way.TCP, Way.SHM), options.carriers());
        assertEquals(List.of(1, 2, 4, 8, 16), options.tenants());
        assertEquals(32, options.atOnce());
        assertEquals("auto", options.backend());
    }

    @Test
    void shouldStartProgramsAtOnceInAShortRunOnlyIfAsked() throws UsageException {
        assertEquals(0, Options.parse("--quick").atOnce());
        assertEquals(0, Options.parse("--no-benchmarks").atOnce());
        assertEquals(0, Options.parse("--at-once", "none").atOnce());
        assertEquals(8, Options.parse("--no-benchmarks", "--at-once", "8").atOnce());
    }

    @Test
    void shouldMeasureNoTenantsInAQuickRunUnlessAsked() throws UsageException {
        assertEquals(List.of(), Options.parse("--quick").tenants());
        assertEquals(List.of(2), Options.parse("--tenants", "2", "--quick").tenants());
        assertEquals(List.of(), Options.parse("--tenants", "none").tenants());
    }

    @Test
    void shouldTakeEachOption() throws UsageException {
        Options options = Options.parse("--markdown", "--keep", "--no-benchmarks", "--json", "f", "--cuda-lib", "d",
            "--programs", "a, b,a", "--carriers", "shm", "--backend", "software", "--timeout", "7",
            "--setting", "hawser.pool.max-starting=8", "--setting", "hawser.pool.awaited-flags=-Xint -Xbatch");
        assertEquals(List.of("hawser.pool.max-starting=8", "hawser.pool.awaited-flags=-Xint -Xbatch"),
            options.settings());
        assertTrue(options.markdown() && options.keep());
        assertFalse(options.benchmarks());
        assertEquals(Optional.of(Path.of("f")), options.json());
        assertEquals(Optional.of(Path.of("d")), options.cudaLibrary());
        assertEquals(List.of("a", "b"), options.programs());
        assertEquals(EnumSet.of(Way.SHM), options.carriers());
        assertEquals(Duration.ofSeconds(7), options.timeout());
        assertFalse(Options.parse("--programs", "none").runPrograms());
    }

    @ParameterizedTest
    @ValueSource(strings = {"--wrong", "--json", "--carriers rdma", "--carriers ,", "--backend amd", "--tenants 0",
        "--tenants 17", "--tenants x", "--timeout 0", "--timeout 3601", "--at-once 0",
        "--at-once 65", "--setting hawser.pool",
        "--setting quarkus.http.port=1", "vector_add"})
    void shouldRefuseAWrongCommandLine(String line) {
        assertThrows(UsageException.class, () -> Options.parse(line.split(" ")));
    }
}
