package io.hawser.check;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * One run of a framework's script.
 *
 * @param program its process.
 * @param framework name and version; empty if the script ended before it printed them.
 * @param missing the module that is not installed; empty if there is none.
 * @param cases what it printed about each case, by name.
 */
record FrameworkRun(ProgramRun program, String framework, String missing, Map<String, JsonNode> cases) {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Reads what a script has printed; other lines are the framework's own. */
    static FrameworkRun of(ProgramRun program) {
        String framework = "";
        String missing = "";
        Map<String, JsonNode> cases = new LinkedHashMap<>();
        for (String line : program.out().lines().filter(l -> l.startsWith("{")).toList()) {
            JsonNode node = parse(line);
            if (node.has("case")) {
                cases.put(node.get("case").asText(), node);
            } else if (node.has("framework")) {
                framework = node.get("framework").asText() + " " + node.path("version").asText();
            } else if (node.has("missing")) {
                missing = node.get("missing").asText();
            }
        }
        return new FrameworkRun(program, framework, missing, cases);
    }

    private static JsonNode parse(String line) {
        try {
            return JSON.readTree(line);
        } catch (JsonProcessingException e) {
            return JSON.createObjectNode(); // a framework's own line that begins with a brace
        }
    }

    /** What is wrong with a case of this run; empty if it has a result. */
    String failure(String name) {
        JsonNode line = cases.get(name);
        if (line != null) {
            return line.path("error").asText("");
        }
        return program.hung() ? "killed after " + Math.round(program.seconds()) + " s"
            : "exit " + program.exit() + ": " + program.lastLine();
    }

    /** The times and failures of the cases, and how long the whole run took; a line. */
    String summary() {
        List<String> parts = new ArrayList<>();
        cases.forEach((name, line) -> {
            if (line.has("error")) {
                parts.add(name + " failed");
            } else if (line.has("seconds")) {
                parts.add(String.format(Locale.ROOT, "%s %.1f ms", name, line.get("seconds").asDouble() * 1e3));
            }
        });
        if (!program.isPassed()) {
            parts.add(program.hung() ? "killed" : "exit " + program.exit());
        }
        parts.add(String.format(Locale.ROOT, "%.0f s in all", program.seconds()));
        return String.join(", ", parts);
    }

    /** Whether two results of a case agree: equal, or numbers within the case's tolerance of the largest of them. */
    static boolean agree(JsonNode first, JsonNode second, double tolerance) {
        if (first.equals(second)) {
            return true;
        }
        if (first.isArray() && second.isArray() && first.size() == second.size()) {
            double scale = scale(first);
            for (int i = 0; i < first.size(); i++) {
                if (!first.get(i).equals(second.get(i))
                    && !near(first.get(i), second.get(i), tolerance, scale)) {
                    return false;
                }
            }
            return true;
        }
        return near(first, second, tolerance, 0);
    }

    /** Sums cancel, so the largest of a case's numbers measures what a rounding may change. */
    private static double scale(JsonNode numbers) {
        double scale = 0;
        for (JsonNode number : numbers) {
            scale = number.isNumber() ? Math.max(scale, Math.abs(number.asDouble())) : scale;
        }
        return scale;
    }

    private static boolean near(JsonNode first, JsonNode second, double tolerance, double scale) {
        return first.isNumber() && second.isNumber() && Math.abs(first.asDouble() - second.asDouble())
            <= tolerance * Math.max(scale, Math.max(Math.abs(first.asDouble()), Math.abs(second.asDouble())));
    }
}
