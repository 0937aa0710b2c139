package io.hawser.reference;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** Makes the page of the lanes from their table and from the runs that {@code .ci/lanes --record} wrote. */
class LanesReferenceTest {
    private static final String TABLE = "appliance/lanes/lanes.tsv";
    private static final String RECORDS = "appliance/docs/results/lanes.tsv";

    private record Lane(String name, String script, String user, int seconds, String needs, String tests) {
        static Lane of(String[] cells) {
            assertEquals(6, cells.length, "a lane must have six cells in " + TABLE + ": " + List.of(cells));
            return new Lane(cells[0], cells[1], cells[2], Integer.parseInt(cells[3]), cells[4], cells[5]);
        }
    }

    private record Run(String lane, String commit, String date, int seconds, int passed, int skipped, String names) {
        static Run of(String[] cells) {
            assertEquals(7, cells.length, "a run must have seven cells in " + RECORDS + ": " + List.of(cells));
            return new Run(cells[0], cells[1], cells[2], Integer.parseInt(cells[3]), Integer.parseInt(cells[4]),
                Integer.parseInt(cells[5]), cells[6]);
        }

        String steps() {
            return skipped == 0 ? passed + " passed" : passed + " passed, " + skipped + " skipped: " + names;
        }
    }

    private static <T> List<T> rows(String path, Function<String[], T> parse) throws IOException {
        return Files.readAllLines(Repository.file(path)).stream().filter(line -> !line.startsWith("#"))
            .map(line -> parse.apply(line.split("\t"))).toList();
    }

    @Test
    void shouldNameAScriptForEachLane() throws IOException {
        for (Lane lane : rows(TABLE, Lane::of)) {
            assertTrue(Files.isExecutable(Repository.file(lane.script())), "not executable: " + lane);
        }
    }

    @Test
    void shouldEqualTheCommittedPage() throws IOException {
        List<Lane> lanes = rows(TABLE, Lane::of);
        Map<String, Run> runs = rows(RECORDS, Run::of).stream().collect(Collectors.toMap(Run::lane, run -> run));
        Markdown page = new Markdown("`" + TABLE + "` and `" + RECORDS + "`", "Lanes").prose("""
            A lane is a test that needs more than `./mvnw verify`: root, private namespaces, Debian packages. No lane
            needs a GPU or KVM, and none changes the machine. `.ci/lanes` lists the lanes, and `.ci/lanes NAME` runs
            one. Exit code 77 means skipped, with the reason. A skipped lane or step never counts as passed.
            """).heading(2, "Content").tableHead("lane", "tests", "script", "user", "needs");
        lanes.forEach(lane -> page.tableRow("`" + lane.name() + "`", lane.tests(), "`" + lane.script() + "`",
            lane.user(), lane.needs()));
        page.heading(2, "Last runs that passed").prose("""
            `.ci/lanes --record NAME` writes a lane that passed, with its commit. The limit is the time on a slow
            machine, by which `.ci/run` chooses the lanes that fit into its 90 minutes.
            """).tableHead("lane", "commit", "date", "seconds", "limit", "steps");
        for (Lane lane : lanes) {
            Run run = runs.remove(lane.name());
            page.tableRow("`" + lane.name() + "`", run == null ? "none" : run.commit(), run == null ? "" : run.date(),
                run == null ? "" : "" + run.seconds(), "" + lane.seconds(), run == null ? "" : run.steps());
        }
        assertTrue(runs.isEmpty(), "runs of lanes that " + TABLE + " does not name: " + runs.keySet());
        new Page("appliance/docs/reference/lanes.md").check(page.text());
    }
}
