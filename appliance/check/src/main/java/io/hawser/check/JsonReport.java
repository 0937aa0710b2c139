package io.hawser.check;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.OptionalDouble;

/** The results as JSON. */
final class JsonReport {
    private static final ObjectMapper JSON = new ObjectMapper();

    private JsonReport() {
    }

    /** Writes all results to a file. */
    static void write(Results results, Path file) {
        ObjectNode root = JSON.createObjectNode();
        root.put("version", results.version()).put("began", results.began().toString())
            .put("seconds", results.seconds()).put("agree", results.isGood())
            .put("nativeMissing", results.nativeMissing());
        results.machine().write(root.putObject("machine"));
        root.set("gpu", results.gpu());
        results.programs().forEach(program -> program(root.withArray("/programs").addObject(), program));
        results.measures().forEach(measure -> figure(root, results, measure));
        results.failures().forEach(root.withArray("/failures")::add);
        write(root, file);
    }

    /** The value as JSON has it: null for an infinite value or none. */
    static Double finite(double value) {
        return Double.isFinite(value) ? value : null;
    }

    /** Writes an object to a file. */
    static void write(ObjectNode root, Path file) {
        try {
            Files.writeString(file, root.toPrettyString() + "\n");
        } catch (IOException e) {
            throw new CheckException("the results cannot be written to " + file + ": " + e, e);
        }
    }

    private static void program(ObjectNode node, ProgramResult program) {
        node.put("name", program.name()).put("agrees", program.agrees()).put("remark", program.remark());
        program.runs().forEach((way, run) -> node.putObject(way.label())
            .put("verdict", program.verdict(way).label()).put("exit", run.exit()).put("seconds", run.seconds())
            .put("calls", run.calls()).put("roundTrips", run.roundTrips()).put("lastLine", run.lastLine()));
    }

    private static void figure(ObjectNode root, Results results, Measure measure) {
        ObjectNode node = JSON.createObjectNode();
        for (Way way : Way.values()) {
            OptionalDouble value = results.figures().get(way, measure.name());
            if (value.isPresent()) {
                ObjectNode figure = node.putObject(way.label()).put("value", measure.shown(value.getAsDouble()));
                results.figures().mean(way, measure.name()).ifPresent(mean -> figure.put("mean", mean));
                if (!measure.target(way).text().isEmpty()) {
                    figure.put("target", measure.target(way).text());
                }
                TextReport.reached(results, measure, way).ifPresent(reached -> figure.put("reached", reached));
            }
        }
        if (!node.isEmpty()) {
            node.put("name", measure.name()).put("label", measure.label()).put("unit", measure.unit());
            results.figures().limit(measure.socket()).ifPresent(v -> node.put("socket", measure.shown(v)));
            results.figures().limit(measure.sockets()).ifPresent(v -> node.put("sockets", measure.shown(v)));
            results.figures().limit(measure.memory()).ifPresent(v -> node.put("memory", measure.shown(v)));
            root.withArray("/figures").add(node);
        }
    }
}
