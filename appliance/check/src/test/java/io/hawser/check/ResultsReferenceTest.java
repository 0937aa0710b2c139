package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.hawser.reference.Markdown;
import io.hawser.reference.Page;
import io.hawser.reference.Repository;
import io.hawser.reference.UsageText;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Makes the page of results from the newest file that {@code hawser-check} wrote, the one of frameworks from all files
 * that it wrote with {@code --frameworks}, and hawser-check's own.
 */
class ResultsReferenceTest {
    private static final String FOLDER = "appliance/docs/results";
    private static final List<String> CARRIERS = List.of("shm", "tcp");

    private static final String OF_FRAMEWORKS = "-frameworks.json";

    private static List<Path> runs(boolean areOfFrameworks) throws IOException {
        try (Stream<Path> files = Files.list(Repository.file(FOLDER))) {
            return files.filter(f -> f.toString().endsWith(".json")
                && f.toString().endsWith(OF_FRAMEWORKS) == areOfFrameworks).sorted().toList();
        }
    }

    private static String number(JsonNode value) {
        return value.isMissingNode() ? "-" : number(value.asDouble());
    }

    private static String number(double v) {
        return String.format(Locale.ROOT, v >= 1000 ? "%,.0f" : v >= 100 ? "%.0f" : v >= 10 ? "%.1f" : v >= 1 ? "%.2f"
            : "%.3f", v);
    }

    private static String ratio(JsonNode value, JsonNode reference) {
        return value.isMissingNode() || reference.asDouble() == 0 ? "-"
            : String.format(Locale.ROOT, "%.2f", value.asDouble() / reference.asDouble());
    }

    private static String reached(JsonNode figure) {
        String target = figure.path("target").asText();
        return figure.has("reached") ? target + (figure.get("reached").asBoolean() ? ": yes" : ": **no**") : target;
    }

    private static void figures(Markdown page, JsonNode run) {
        page.heading(2, "Figures").prose("""
            `/native` is the ratio to the native figure of the same run. `limit` is the same transfer without CUDA: for
            shared memory a hand-over between two threads, or `memcpy`; for TCP a plain socket on loopback. Targets that
            the run did not reach are marked **no**.
            """).tableHead("measure", "unit", "native", "shared memory", "/native", "limit", "target", "TCP", "/native",
            "limit", "target");
        for (JsonNode figure : run.path("figures")) {
            List<String> cells = new ArrayList<>(List.of(figure.path("label").asText(), figure.path("unit").asText(),
                number(figure.at("/native/value"))));
            for (String carrier : CARRIERS) {
                JsonNode value = figure.at("/" + carrier + "/value");
                cells.addAll(List.of(number(value), ratio(value, figure.at("/native/value")),
                    number(figure.path(carrier.equals("tcp") ? "socket" : "memory")), reached(figure.path(carrier))));
            }
            page.tableRow(cells.toArray(String[]::new));
        }
    }

    private static void programs(Markdown page, JsonNode run) {
        Map<String, Integer> verdicts = new TreeMap<>();
        run.path("programs").forEach(program -> CARRIERS.stream().filter(program::has)
            .forEach(c -> verdicts.merge(program.at("/" + c + "/verdict").asText(), 1, Integer::sum)));
        List<String> counts = new ArrayList<>();
        verdicts.forEach((verdict, count) -> counts.add(count + " " + verdict));
        page.heading(2, "Programs").prose(run.path("programs").size() + " programs, runs over both carriers: "
            + String.join(", ", counts) + ". Times are in seconds.").tableHead("program", "native", "s",
                "shared memory", "s", "calls", "TCP", "s", "calls", "remark");
        for (JsonNode program : run.path("programs")) {
            List<String> cells = new ArrayList<>(List.of("`" + program.path("name").asText() + "`",
                program.at("/native/verdict").asText("-"), number(program.at("/native/seconds"))));
            for (String carrier : CARRIERS) {
                JsonNode result = program.path(carrier);
                cells.addAll(List.of(result.path("verdict").asText("-"), number(result.path("seconds")),
                    result.path("calls").asText("-")));
            }
            cells.add(program.path("remark").asText());
            page.tableRow(cells.toArray(String[]::new));
        }
    }

    private static String start(JsonNode run) {
        return "Start: " + run.path("began").asText().substring(0, 16).replace('T', ' ') + " UTC";
    }

    private static String machine(JsonNode machine) {
        return "Machine: " + machine.path("processor").asText() + ", " + machine.path("processors").asText()
            + " processors, " + machine.path("memoryGiB").asText() + " GiB; " + machine.path("system").asText();
    }

    private static String milliseconds(JsonNode way) {
        return way.has("seconds") ? number(way.path("seconds").doubleValue() * 1000) : "-";
    }

    private static String frameworks() throws IOException {
        Markdown page = new Markdown("the files `*" + OF_FRAMEWORKS + "` of `" + FOLDER + "`",
            "Results of hawser-check --frameworks")
            .prose("Times of all steps in milliseconds, medians of the runs each way in turn. A case is right when its "
                + "numbers equal the native ones, within the case's tolerance. Round trips of a step are those of all "
                + "processes of a case.");
        for (Path file : runs(true).reversed()) {
            frameworks(page, file);
        }
        return page.text();
    }

    private static void frameworks(Markdown page, Path file) throws IOException {
        JsonNode run = new ObjectMapper().readTree(file.toFile());
        page.heading(2, start(run).replace("Start: ", ""))
            .item("File: [`" + file.getFileName() + "`](../results/" + file.getFileName() + ")")
            .item("Runs each way: " + run.at("/cases/0/native/runs").size()).item(machine(run.path("machine")));
        run.path("gpus").forEach(gpu -> page.item("GPU: " + gpu.asText() + "; driver "
            + run.at("/machine/driver").asText("none")));
        run.path("versions").properties().forEach(script -> page.item("`" + script.getKey() + "`: "
            + script.getValue().asText()));
        if (run.has("transcribed")) {
            page.item("Origin of the file: " + run.get("transcribed").asText());
        }
        page.tableHead("case", "steps", "native", "shared memory", "", "/native", "TCP", "", "/native",
            "round trips a step");
        for (JsonNode one : run.path("cases")) {
            List<String> cells = new ArrayList<>(List.of("`" + one.path("script").asText() + ":"
                + one.path("case").asText() + "`", one.path("steps").asText(), milliseconds(one.path("native"))));
            List<String> trips = new ArrayList<>();
            for (String carrier : CARRIERS) {
                JsonNode way = one.path(carrier);
                cells.addAll(List.of(way.path("verdict").asText("-"), milliseconds(way),
                    ratio(way.path("seconds"), one.at("/native/seconds"))));
                if (way.has("roundTripsPerStep")) {
                    trips.add(String.format(Locale.ROOT, "%.2f", way.path("roundTripsPerStep").asDouble()));
                }
            }
            cells.add(String.join(" / ", trips));
            page.tableRow(cells.toArray(String[]::new));
        }
    }

    private static String page() throws IOException {
        List<Path> runs = runs(false);
        Path newest = runs.getLast();
        JsonNode run = new ObjectMapper().readTree(newest.toFile());
        JsonNode machine = run.path("machine");
        JsonNode gpu = run.path("gpu");
        Markdown page = new Markdown("the newest file of `" + FOLDER + "`", "Results of hawser-check")
            .item("File: [`" + newest.getFileName() + "`](../results/" + newest.getFileName() + ")")
            .item(start(run) + "; duration: " + Math.round(run.path("seconds").asDouble()) + " s")
            .item(machine(machine))
            .item("GPU: " + gpu.path("device").asText() + ", " + gpu.path("memoryMiB").asText() + " MiB; driver "
                + machine.path("driver").asText("none") + ", CUDA " + gpu.path("cudaVersion").asText());
        if (run.has("version")) {
            page.item("Version of Hawser: " + run.get("version").asText());
        }
        if (!run.path("nativeMissing").asText().isEmpty()) {
            page.item("Without native runs: " + run.get("nativeMissing").asText());
        }
        if (run.has("transcribed")) {
            page.item("Origin of the file: " + run.get("transcribed").asText());
        }
        run.path("failures").forEach(failure -> page.item("Not measured: " + failure.asText()));
        figures(page, run);
        programs(page, run);
        return page.text();
    }

    @Test
    void shouldEqualTheCommittedPage() throws IOException {
        new Page("appliance/docs/reference/results.md").check(page());
    }

    @Test
    void shouldEqualTheCommittedPageOfFrameworks() throws IOException {
        new Page("appliance/docs/reference/frameworks.md").check(frameworks());
    }

    @Test
    void shouldEqualTheCommittedPageOfTheCommand() {
        new Page("appliance/docs/reference/hawser-check.md").check(new Markdown("`hawser-check --help`",
            "hawser-check").code(Options.USAGE).text());
    }

    @Test
    void shouldHaveTheOptionsOfTheUsageTextInTheManualPage() {
        UsageText.checkManual(Options.USAGE, "appliance/distribution/share/man/man1/hawser-check.1");
    }

    /** The fields that {@link JsonReport} writes, and no others: a renamed field would leave gaps in the page. */
    @Test
    void shouldReadTheFieldsThatTheReportHas() throws IOException {
        for (Path file : runs(false)) {
            assertEquals(true, file.getFileName().toString().matches("\\d{4}-\\d\\d-\\d\\d-[a-z0-9-]+\\.json"),
                "a file of results is named <date>-<machine>.json: " + file);
            JsonNode run = new ObjectMapper().readTree(file.toFile());
            for (String field : List.of("began", "seconds", "agree", "nativeMissing", "machine", "gpu", "programs",
                "figures")) {
                assertFalse(run.path(field).isMissingNode(), file + " has no field " + field);
            }
            List<String> known = Measure.all(List.of(1, 2, 4, 8, 16), 32).stream().map(Measure::name).toList();
            run.path("figures").forEach(f -> assertEquals(true, known.contains(f.path("name").asText()),
                file + " has an unknown figure: " + f));
        }
    }
}
