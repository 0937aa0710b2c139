package io.hawser.poolsimulator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.vgpu.PoolPlacement;
import io.hawser.poolsimulator.engine.Placing;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** {@code simulate pool}, in small pools. */
class PoolCommandTest {
    private static final Path RECORDED = Path.of("src/test/resources/arrivals.csv");
    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();
    @TempDir
    private Path folder;

    private int run(Placing placing, String... args) {
        out.getBuffer().setLength(0);
        err.getBuffer().setLength(0);
        CommandLine line = PoolSimulate.commandLine();
        PoolCommand pool = line.getSubcommands().get("pool").getCommand();
        pool.placeBy(placing);
        line.setOverwrittenOptionsAllowed(true); // those of small()
        line.setOut(new PrintWriter(out, true));
        line.setErr(new PrintWriter(err, true));
        return line.execute(args);
    }

    private int run(String... args) {
        return run(PoolPlacement::anywhere, args);
    }

    private long number(String before) {
        Matcher matcher = Pattern.compile(Pattern.quote(before) + "([0-9]+)").matcher(out.toString());
        assertTrue(matcher.find(), () -> before + " in: " + out);
        return Long.parseLong(matcher.group(1));
    }

    private String digest() {
        return out.toString().lines().filter(line -> line.startsWith("digest")).findFirst().orElseThrow();
    }

    private int small(String... more) {
        List<String> args = new ArrayList<>(List.of("pool", "--brokers", "20", "--gpus", "2", "--vgpus",
            "400", "--rate", "20", "--life", "60s", "--seconds", "80"));
        args.addAll(List.of(more));
        return run(args.toArray(String[]::new));
    }

    @Test
    void shouldGiveTheSameHomesForTheSameSeed() {
        assertEquals(0, small(), err.toString());
        String first = digest();
        assertEquals(0, small(), err.toString());
        assertEquals(first, digest());
        assertEquals(0, small("--seed", "2"), err.toString());
        assertNotEquals(first, digest());
        assertEquals(0, small("--placement", "packed"), err.toString());
        assertNotEquals(first, digest());
    }

    @Test
    void shouldRepeatRecordedArrivalsAndPlot() throws IOException {
        Path record = folder.resolve("arrivals.csv");
        assertEquals(0, small("--record", record.toString(), "--plot", folder.resolve("p.svg").toString()));
        String first = digest();
        assertEquals(0, small("--arrivals", record.toString(), "--life", "1s"), err.toString());
        assertEquals(first, digest());
        assertTrue(Files.readString(folder.resolve("p.svg")).contains("vGPUs of silent brokers"));
    }

    @Test
    void shouldRunTheRecordedExample() {
        assertEquals(0, run("pool", "--brokers", "4", "--gpus", "2", "--seconds", "20", "--arrivals",
            RECORDED.toString()), err.toString());
        assertEquals(111, number("placements: "));
        assertEquals(0, number("over-reservations: "));
    }

    @Test
    void shouldTakeTheIdleVgpusOfALostTenthAndDropThemOnReturn() {
        assertEquals(0, small("--lose", "0.1", "--at", "40s", "--back", "70s", "--seconds", "100"), err.toString());
        long taken = number("taken from silent brokers: ");
        long dropped = number("dropped by brokers that came back: ");
        assertTrue(taken > 5 && dropped >= taken, out.toString());
        assertTrue(out.toString().contains(", the last at 54."), "silent after 15 s: " + out);
        List<String[]> rows = out.toString().lines().filter(line -> line.startsWith("| ")).skip(1)
            .map(line -> line.split("\\|")).toList();
        for (String[] row : rows) {
            double seconds = Double.parseDouble(row[1].strip());
            long kept = Long.parseLong(row[6].strip());
            assertEquals(seconds > 55 && seconds < 70, kept > 0, "vGPUs in use stay: " + out);
            assertEquals("0", row[5].strip(), "there is room for all others: " + out);
        }
    }

    @Test
    void shouldCountWhatFindsNoHome() {
        assertEquals(0, small("--used", "0", "--sizes", "30g", "--vgpus", "78", "--life", "100000s", "--lose", "0.1",
            "--at", "40s", "--back", "70s"), err.toString());
        assertEquals(0, number("refused: "));
        assertEquals(2, number("taken from silent brokers: "), "78 of 80 places were taken, 8 are lost: " + out);
        assertTrue(out.toString().lines().anyMatch(line -> line.matches("\\| 6[0-9] .*\\| 6 +\\| 0 +\\|")),
            out.toString());
    }

    @Test
    void shouldRefuseWhatDoesNotFit() {
        assertEquals(0, small("--sizes", "79g", "--vgpus", "50", "--life", "100000s"), err.toString());
        assertEquals(40, number("placements: "));
        assertEquals(10, number("refused: "));
        assertTrue(out.toString().contains("first refusal: no GPU has a place for the vGPU"), out.toString());
    }

    @Test
    void shouldNoticeAPlacementThatReservesTooMuch() {
        Placing broken = (rules, vgpu, mine) -> new PoolPlacement.Home(rules.me(),
            List.of(mine.getFirst().device().uuid()));
        assertEquals(1, run(broken, "pool", "--brokers", "2", "--gpus", "2", "--vgpus", "100", "--seconds", "2"));
        assertTrue(number("over-reservations: ") > 0);
        assertTrue(err.toString().startsWith("simulate: a GPU has more reserved than it has: gpu="), err.toString());
    }

    @Test
    void shouldNoticeTablesThatDifferFromTheCount() {
        // The row names a GPU of a broker that does not have it: no sum of the broker's own table counts it.
        Placing broken = (rules, vgpu, mine) -> new PoolPlacement.Home(rules.me().equals("broker-1") ? "broker-2"
            : "broker-1", List.of(mine.getFirst().device().uuid()));
        assertEquals(1, run(broken, "pool", "--brokers", "2", "--gpus", "1", "--vgpus", "4", "--sizes", "1g",
            "--seconds", "2"));
        assertTrue(err.toString().contains(" must reserve what was placed: gpu="), err.toString());
    }

    private void assertUsage(String message, String... args) {
        assertEquals(2, run(args));
        assertTrue(err.toString().contains("simulate: ") && err.toString().contains(message), err.toString());
        assertEquals(1, err.toString().lines().count(), err.toString());
    }

    @Test
    void shouldExplainAWrongCommandLine() {
        assertUsage("a command is missing");
        assertUsage("there must be 1 to 10000 brokers", "pool", "--brokers", "0");
        assertUsage("a size must be a number and m or g", "pool", "--sizes", "5");
        assertUsage("a share must be a number", "pool", "--shares", "5g");
        assertUsage("a share must be 1 to 100", "pool", "--shares", "101");
        assertUsage("hawser.placement", "pool", "--placement", "best");
        assertUsage("the return must be after the loss", "pool", "--lose", "0.1", "--at", "9s", "--back", "9s");
        assertUsage("--lose at least 0", "pool", "--lose", "1");
        assertUsage("a time must be at least 1ms", "pool", "--life", "0");
    }

    private void assertFile(String message, String... lines) throws IOException {
        Path file = Files.write(folder.resolve("a"), List.of(lines));
        assertEquals(1, run("pool", "--brokers", "1", "--gpus", "1", "--arrivals", file.toString()));
        assertTrue(err.toString().contains(message), err.toString());
    }

    @Test
    void shouldExplainAWrongFile() throws IOException {
        String head = "at_ms,life_ms,memory_mib,share,used";
        assertFile("line 1 must be at_ms", "1,1,1,1,1");
        assertFile("line 2 must have the fields", head, "1,1,1,1");
        assertFile("line 2 must have whole numbers: x", head, "1,1,x,1,1");
        assertFile("line 2 must have a number of 1..100: 0", head, "1,1,1,0,1");
        assertFile("line 3 must not be before the last one", head, "2,1,1,1,1", "1,1,1,1,1");
    }
}
