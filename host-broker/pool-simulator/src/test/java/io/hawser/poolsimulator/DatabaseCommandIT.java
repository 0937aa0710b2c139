package io.hawser.poolsimulator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

/** {@code simulate pool-database}, with a few brokers and a server of its own. */
class DatabaseCommandIT {
    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    private int run(String... args) {
        CommandLine line = PoolSimulate.commandLine();
        line.setOut(new PrintWriter(out, true));
        line.setErr(new PrintWriter(err, true));
        return line.execute(args);
    }

    @Test
    void shouldCreateAtSeveralBrokersAndNeverUseADatabaseWithAPool() throws Exception {
        Optional<Path> programs = TestServer.programs();
        assumeTrue(programs.isPresent(), "SKIPPED: PostgreSQL is not installed (Debian's package postgresql)");
        try (TestServer server = TestServer.start(programs.get())) {
            // 3 GPUs have room for 3 times 2 of these, beside the contexts.
            assertEquals(0, run("pool-database", server.url(), "--brokers", "3", "--gpus", "1", "--rate", "20",
                "--seconds", "1", "--size", "39g"), err.toString());
            assertTrue(out.toString().contains("3 brokers, 3 GPUs; a round trip "), out.toString());
            assertTrue(out.toString().matches("(?s).*\\| 20 +\\| \\d+ +\\| 6 +\\| 14 +\\|.*"), out.toString());
            assertTrue(out.toString().contains("first refusal: no GPU has a place for the vGPU"), out.toString());
            assertTrue(out.toString().contains("over-reserved GPUs: 0"), out.toString());
            assertEquals(1, run("pool-database", server.url()));
            assertTrue(err.toString().contains("the database must be empty, because a pool may use it"),
                err.toString());
        }
    }

    @Test
    void shouldExplainAWrongCommandLine() {
        assertEquals(2, run("pool-database", "jdbc:h2:mem:x"));
        assertTrue(err.toString().contains("the database must be jdbc:postgresql:"), err.toString());
        assertEquals(2, run("pool-database", "jdbc:postgresql://127.0.0.1/x", "--brokers", "0"));
        assertTrue(err.toString().contains("there must be 1 to 200 brokers"), err.toString());
    }
}
