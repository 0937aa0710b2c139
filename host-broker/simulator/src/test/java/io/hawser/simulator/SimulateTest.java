package io.hawser.simulator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** The command line. */
class SimulateTest {
    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();
    @TempDir
    private Path folder;

    private int run(String... args) {
        CommandLine line = Simulate.commandLine();
        line.setOut(new PrintWriter(out, true));
        line.setErr(new PrintWriter(err, true));
        return line.execute(args);
    }

    private String path(String name) {
        return folder.resolve(name).toString();
    }

    @Test
    void shouldRecordAndReplayAndPlot() throws IOException {
        assertEquals(0, run("run", "--seconds", "1", "2xflight:weight=50", "wait", "--record", path("r"), "--plot",
            path("p.svg"), "--each"), err.toString());
        assertTrue(out.toString().contains("| flight-1 | 1        | 25.0 % |"), out.toString());
        assertTrue(Files.readString(folder.resolve("p.svg")).contains("wait-3"));
        assertEquals(0, run("replay", path("r"), "--plot", path("q.svg")), err.toString());
        assertTrue(out.toString().contains(" looks replayed, all equal"), out.toString());
        assertTrue(Files.readString(folder.resolve("q.svg")).contains("wait-3"));
        assertEquals(0, run("replay", path("r"), "--quantum", "8ms"), err.toString());
        assertTrue(out.toString().contains("simulated with TurnRules[quantumNs=8000000"), out.toString());
    }

    @Test
    void shouldFailWhereADecisionDiffers() throws IOException {
        run("run", "--seconds", "1", "2xflight", "--record", path("r"));
        List<String> lines = Files.readAllLines(folder.resolve("r"));
        Files.write(folder.resolve("r"), lines.stream()
            .map(line -> line.replace("rules 4000000", "rules 5000000")).toList());
        assertEquals(1, run("replay", path("r")));
        assertTrue(out.toString().contains("then one differs: line "), out.toString());
    }

    @Test
    void shouldPrintARowForEachValueOfARule() {
        assertEquals(0, run("run", "--seconds", "1", "2xflight", "--vary", "quantum=2ms,8ms"), err.toString());
        List<String> rows = out.toString().lines().toList();
        assertEquals(4, rows.size());
        assertTrue(rows.get(2).startsWith("| 2ms ") && rows.get(3).startsWith("| 8ms "), out.toString());
        assertTrue(turns(rows.get(2)) > 3 * turns(rows.get(3)), out.toString());
    }

    private static int turns(String row) {
        return Integer.parseInt(row.split("\\|")[7].strip());
    }

    @Test
    void shouldReadArgumentsFromAFile() throws IOException {
        Files.writeString(folder.resolve("load"), "--gpus=2\n--seconds=1\n# a comment\n2xflight\n");
        assertEquals(0, run("run", "@" + path("load")), err.toString());
        assertTrue(out.toString().contains("2 GPUs, 1 s, used for 100.0 %"), out.toString());
    }

    private void assertUsage(String message, String... args) {
        assertEquals(2, run(args));
        assertTrue(err.toString().contains("simulate: ") && err.toString().contains(message), err.toString());
        assertEquals(1, err.toString().lines().count(), err.toString());
        err.getBuffer().setLength(0);
    }

    @Test
    void shouldExplainAWrongCommandLine() {
        assertUsage("a command is missing");
        assertUsage("a load must be", "run", "nothing");
        assertUsage("there must be 1 to 64 GPUs", "run", "flight", "--gpus", "65");
        assertUsage("there must be 1 to 64 GPUs", "run", "flight", "--seconds", "0");
        assertUsage("a load must use at most all GPUs", "run", "flight:gpus=2");
        assertUsage("a placement must be", "run", "flight", "--placement", "best");
        assertUsage("a time must be a number and", "run", "flight", "--quantum", "4");
        assertUsage("turns need a quantum over 0", "run", "flight", "--quantum", "0");
        assertUsage("a rule must be quantum", "run", "flight", "--vary", "speed=1");
        assertUsage("--vary must be RULE=VALUE", "run", "flight", "--vary", "speed");
        assertUsage("--vary: ", "run", "flight", "--vary", "turn-parts=x");
        assertUsage("--vary goes without", "run", "flight", "--vary", "quantum=1ms", "--each");
        assertUsage("a tenant must join", "run", "flight:from=20s");
    }

    @Test
    void shouldExplainAWrongFile() throws IOException {
        assertEquals(1, run("replay", path("missing")));
        assertTrue(err.toString().contains("NoSuchFileException"), err.toString());
        Files.writeString(folder.resolve("r"), "hawser-turns 1\nrules 1 0 0 8 4 8\nlook\n");
        assertEquals(1, run("replay", path("r")));
        assertTrue(err.toString().contains("simulate: line 3: "), err.toString());
    }
}
