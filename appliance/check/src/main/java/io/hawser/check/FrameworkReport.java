package io.hawser.check;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalDouble;

/**
 * The results of {@code hawser-check --frameworks}.
 *
 * @param began when it began.
 * @param machine the machine.
 * @param gpus names of the broker's GPUs.
 * @param versions name and version of the framework of each script that ran.
 * @param skipped scripts that could not run, with the reason.
 * @param cases all cases.
 * @param defects lines of the broker's log that report a defect.
 */
record FrameworkReport(Instant began, Machine machine, List<String> gpus, Map<String, String> versions,
    List<String> skipped, List<FrameworkCase> cases, List<String> defects) {

    /** Whether something ran, no case differs, and the broker reports no defect. */
    boolean isGood() {
        return !cases.isEmpty() && defects.isEmpty() && cases.stream()
            .allMatch(c -> c.runs().keySet().stream().noneMatch(way -> c.verdict(way).isFailure()));
    }

    /** The table, the remarks and a summary. */
    String text(boolean markdown) {
        Table table = new Table("lllllrrrrrrr", "script", "case", "native", "shm", "tcp", "steps", "native ms", "shm",
            "tcp", "shm ratio", "tcp ratio", "trips a step");
        StringBuilder remarks = new StringBuilder();
        int right = 0;
        int failed = 0;
        for (FrameworkCase one : cases) {
            table.row(one.script(), one.name(), verdict(one, Way.NATIVE), verdict(one, Way.SHM), verdict(one, Way.TCP),
                one.steps() == 0 ? "" : Integer.toString(one.steps()), milliseconds(one, Way.NATIVE),
                milliseconds(one, Way.SHM), milliseconds(one, Way.TCP), ratio(one, Way.SHM), ratio(one, Way.TCP),
                trips(one));
            for (Way way : one.runs().keySet()) {
                ProgramResult.Verdict verdict = one.verdict(way);
                right += way != Way.NATIVE && verdict == ProgramResult.Verdict.RIGHT ? 1 : 0;
                failed += verdict.isFailure() ? 1 : 0;
                if (verdict.isFailure()) {
                    remarks.append(one.script()).append(':').append(one.name()).append(" over ").append(way.label())
                        .append(": ").append(one.remark(way)).append('\n');
                }
            }
        }
        StringBuilder text = new StringBuilder(table.text(markdown)).append('\n').append(remarks);
        versions.forEach((script, version) -> text.append(script).append(": ").append(version).append('\n'));
        skipped.forEach(line -> text.append("skipped: ").append(line).append('\n'));
        defects.forEach(line -> text.append("defect: ").append(line).append('\n'));
        return text.append("%d cases: %d runs over a carrier right, %d wrong or hung; %d scripts skipped%n"
            .formatted(cases.size(), right, failed, skipped.size())).toString();
    }

    private static String verdict(FrameworkCase one, Way way) {
        return one.runs().containsKey(way) ? one.verdict(way).label() : "";
    }

    private static String milliseconds(FrameworkCase one, Way way) {
        OptionalDouble seconds = one.seconds(way);
        return seconds.isEmpty() ? "" : String.format(Locale.ROOT, "%.1f", seconds.getAsDouble() * 1e3);
    }

    private static String ratio(FrameworkCase one, Way way) {
        OptionalDouble seconds = one.seconds(way);
        OptionalDouble reference = one.seconds(Way.NATIVE);
        return seconds.isEmpty() || reference.isEmpty() ? ""
            : String.format(Locale.ROOT, "%.2f", seconds.getAsDouble() / reference.getAsDouble());
    }

    private static String trips(FrameworkCase one) {
        return one.roundTripsPerStep().isEmpty() ? ""
            : String.join(" / ", one.roundTripsPerStep().values().stream()
                .map(count -> String.format(Locale.ROOT, "%.2f", count)).toList());
    }

    /** Writes everything as JSON. */
    void write(Path file) {
        ObjectMapper mapper = new ObjectMapper();
        ObjectNode root = mapper.createObjectNode().put("began", began.toString()).put("agree", isGood());
        machine.write(root.putObject("machine"));
        gpus.forEach(root.putArray("gpus")::add);
        versions.forEach(root.putObject("versions")::put);
        skipped.forEach(root.putArray("skipped")::add);
        defects.forEach(root.putArray("defects")::add);
        ArrayNode list = root.putArray("cases");
        for (FrameworkCase one : cases) {
            ObjectNode node = list.addObject().put("script", one.script()).put("case", one.name()).put("steps",
                one.steps());
            one.runs().forEach((way, runs) -> {
                ObjectNode ofWay = node.putObject(way.label()).put("verdict", one.verdict(way).label());
                one.seconds(way).ifPresent(seconds -> ofWay.put("seconds", seconds));
                if (one.roundTripsPerStep().containsKey(way)) {
                    ofWay.put("roundTripsPerStep", one.roundTripsPerStep().get(way));
                }
                if (!one.remark(way).isEmpty()) {
                    ofWay.put("remark", one.remark(way));
                }
                ArrayNode results = ofWay.putArray("runs");
                runs.forEach(run -> results.add(run.cases().getOrDefault(one.name(), mapper.nullNode())));
            });
        }
        JsonReport.write(root, file);
    }
}
