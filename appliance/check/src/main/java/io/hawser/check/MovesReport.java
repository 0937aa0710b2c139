package io.hawser.check;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Locale;

/**
 * The results of {@code hawser-check --moves}.
 *
 * @param places between what the vGPU has moved.
 * @param gpus number of the first broker's GPUs.
 * @param runs in their order.
 * @param skipped sets that did not run, with the reason.
 * @param defects of the brokers' logs.
 */
record MovesReport(Instant began, Machine machine, MovesOptions options, String places, int gpus,
    List<MovesRun> runs, List<String> skipped, List<String> defects) {
    /** Whether all results are equal and no broker reports a defect. */
    boolean isGood() {
        return defects.isEmpty() && runs.stream().allMatch(MovesRun::isEqual);
    }

    /** The table, the reasons of moves that did not end well, and the defects. */
    String text(boolean markdown) {
        StringBuilder text = new StringBuilder(machine.text()).append('\n');
        text.append(String.format(Locale.ROOT, "moves %s, %s, memory %d MiB%n%n", places, options.carrier().label(),
            options.mib()));
        Table table = new Table("lrrrrrrl", "program", "moves", "others", "median ms", "worst ms", "longest step ms",
            "without moves", "result");
        for (MovesRun run : runs) {
            table.row(run.name(), Integer.toString(run.moveMs().size()), Integer.toString(run.reasons().size()),
                Long.toString(run.medianMs()), Long.toString(run.worstMs()), ms(run.waitMs()),
                run.aloneMs().isEmpty() ? "" : ms(run.aloneMs().getAsDouble()), run.isEqual() ? "equal" : "DIFFERENT");
        }
        text.append(table.text(markdown));
        runs.forEach(run -> run.reasons().forEach(reason -> text.append(run.name()).append(": not moved: ")
            .append(reason).append('\n')));
        skipped.forEach(line -> text.append("skipped: ").append(line).append('\n'));
        defects.forEach(line -> text.append("defect: ").append(line).append('\n'));
        return text.toString();
    }

    private static String ms(double value) {
        return String.format(Locale.ROOT, "%.0f", value);
    }

    /** Writes everything as JSON. */
    void write(Path file) {
        ObjectNode root = new ObjectMapper().createObjectNode().put("began", began.toString()).put("good", isGood())
            .put("carrier", options.carrier().label()).put("backend", options.backend()).put("places", places)
            .put("gpus", gpus).put("mib", options.mib());
        machine.write(root.putObject("machine"));
        ArrayNode list = root.putArray("runs");
        for (MovesRun run : runs) {
            ObjectNode node = list.addObject().put("set", run.name()).put("equal", run.isEqual())
                .put("longestStepMs", run.waitMs());
            run.aloneMs().ifPresent(ms -> node.put("longestStepWithoutMovesMs", ms));
            run.moveMs().forEach(node.putArray("moveMs")::add);
            run.reasons().forEach(node.putArray("notMoved")::add);
        }
        skipped.forEach(root.putArray("skipped")::add);
        defects.forEach(root.putArray("defects")::add);
        JsonReport.write(root, file);
    }
}
