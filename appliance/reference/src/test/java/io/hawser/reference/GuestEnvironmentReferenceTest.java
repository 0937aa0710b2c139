package io.hawser.reference;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.dataformat.yaml.YAMLMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Makes the page of a guest's variables from their table, and compares the table with the sources of the guest. */
class GuestEnvironmentReferenceTest {
    private static final String TABLE = "guest-agent/environment.yaml";
    private static final List<String> SOURCES = List.of("guest-agent/interposer", "guest-agent/agent",
        "guest-agent/redirect", "guest-agent/packaging/wheel", "shm-transport/c");
    /** A literal with the name of a variable of ours; the name ends where the literal or the name does. */
    private static final Pattern OURS = Pattern.compile("\"(HAWSER_[A-Z_]+)\\b");
    private static final Pattern CUDA = Pattern.compile("getenv\\(\"(CUDA_[A-Z_]+)\"");

    private static final Pattern LITERAL_LINE = Pattern.compile("(?m)^ *\"(.*)\\\\n\";?$");

    private final JsonNode variables;

    GuestEnvironmentReferenceTest() throws IOException {
        variables = new YAMLMapper().readTree(Repository.file(TABLE).toFile()).get("variables");
    }

    /** All sources of the guest in C and Python but the tests, as one text. */
    private static String sources() throws IOException {
        StringBuilder all = new StringBuilder();
        for (String folder : SOURCES) {
            try (Stream<Path> files = Files.walk(Repository.file(folder))) {
                for (Path file : files.filter(f -> f.toString().matches(".*\\.([ch]|py)")
                    && !f.toString().matches(".*/(tests|target)/.*")).toList()) {
                    all.append(Files.readString(file)).append('\n');
                }
            }
        }
        return all.toString();
    }

    @Test
    void shouldNameTheVariablesThatTheSourcesRead() throws IOException {
        TreeSet<String> read = new TreeSet<>();
        for (Pattern pattern : List.of(OURS, CUDA)) {
            pattern.matcher(sources()).results().forEach(match -> read.add(match.group(1)));
        }
        TreeSet<String> described = new TreeSet<>(variables.findValuesAsText("name"));
        assertEquals(read, described, TABLE + " must name the variables that the sources read");
    }

    @Test
    void shouldHaveTheNumbersOfTheSources() throws IOException {
        String sources = sources();
        int compared = 0;
        for (JsonNode variable : variables) {
            for (Map.Entry<String, JsonNode> define : variable.path("defines").properties()) {
                Matcher matcher = Pattern.compile("#define " + define.getKey() + "\\s+(\\d+)").matcher(sources);
                assertTrue(matcher.find(), "no #define " + define.getKey() + " in " + SOURCES);
                assertEquals(define.getValue().asText(), matcher.group(1), define.getKey() + " of " + TABLE);
                compared++;
            }
        }
        assertTrue(compared > 0, "no number was compared");
    }

    /** The usage text is a C literal, one line of the text a line. */
    @Test
    void shouldEqualTheCommittedPageOfTheCommand() throws IOException {
        String source = Files.readString(Repository.file("guest-agent/agent/main.c"));
        int begin = source.indexOf("usage[] =");
        String literal = source.substring(begin, source.indexOf(";\n", begin));
        StringBuilder usage = new StringBuilder();
        LITERAL_LINE.matcher(literal).results().forEach(line -> usage.append(line.group(1)).append('\n'));
        assertTrue(usage.indexOf("usage: hawser") == 0, "the usage text of guest-agent/agent/main.c: " + usage);
        new Page("appliance/docs/reference/hawser.md").check(new Markdown("`hawser --help`", "hawser")
            .prose("hawser is the command of the guest.").code(usage.toString()).text());
    }

    @Test
    void shouldEqualTheCommittedPage() {
        Markdown page = new Markdown("`" + TABLE + "`", "Environment of a guest").prose("""
            The guest libraries and the `hawser` command read these variables. A variable takes precedence over the
            setting of the same meaning under `[guest]` in `/etc/hawser/guest.toml`. That file takes precedence over
            `/run/hawser/guest.toml`, which `hawser setup` writes from the hypervisor's settings. A set-uid program
            reads only `HAWSER_LOG`, `HAWSER_SPIN`, `HAWSER_COPY_THREADS` and `CUDA_VISIBLE_DEVICES`.
            """);
        for (JsonNode variable : variables) {
            page.heading(2, "`" + variable.get("name").asText() + "`").prose(variable.get("meaning").asText())
                .item("Value: " + variable.get("range").asText())
                .item("Default: " + variable.get("default").asText());
            if (variable.has("file")) {
                page.item("In `guest.toml`: `" + variable.get("file").asText() + "`");
            }
        }
        new Page("appliance/docs/reference/guest-environment.md").check(page.text());
    }
}
