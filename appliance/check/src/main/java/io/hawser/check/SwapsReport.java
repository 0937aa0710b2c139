package io.hawser.check;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.OptionalDouble;

/**
 * The results of {@code hawser-check --swaps}.
 *
 * @param nativeSeconds time of a tenant's program that ran natively; empty if none did.
 * @param keeper the host's memory at the start.
 * @param runs in their order.
 * @param defects of the broker's log.
 */
record SwapsReport(Instant began, Machine machine, SwapsOptions options, OptionalDouble nativeSeconds, Keeper keeper,
    List<SwapRun> runs, List<String> defects) {
    /**
     * The process that keeps the memory of swapped sessions.
     *
     * @param mib the memory that it had allocated ahead.
     * @param seconds from the broker's start of it until then.
     */
    record Keeper(long mib, double seconds) {}

    /** Whether the broker reports no defect. */
    boolean isGood() {
        return defects.isEmpty();
    }

    /** Two tables for each set, the table of goals, and the defects. */
    String text(boolean markdown) {
        StringBuilder text = new StringBuilder(machine.text()).append('\n');
        text.append(String.format(Locale.ROOT, "the keeper had %d MiB after %.0f s%n", keeper.mib, keeper.seconds));
        nativeSeconds.ifPresent(seconds -> text
            .append(String.format(Locale.ROOT, "a tenant's program alone, natively: %.3f s%n", seconds)));
        runs.forEach(run -> text.append('\n').append(run.text(markdown)));
        text.append('\n').append(goals().text(markdown));
        defects.forEach(line -> text.append("defect: ").append(line).append('\n'));
        return text.toString();
    }

    /** The figures of the sets. */
    Goals goals() {
        Goals goals = new Goals();
        runs.forEach(run -> goals.add(run.name() + ": " + run.figure(), options.carrier(), run.value(),
            OptionalDouble.empty(), run.target()));
        return goals;
    }

    /** Writes everything as JSON. */
    void write(Path file) {
        ObjectNode root = new ObjectMapper().createObjectNode().put("began", began.toString()).put("good", isGood())
            .put("carrier", options.carrier().label());
        machine.write(root.putObject("machine"));
        options.write(root.putObject("options"));
        root.putObject("keeper").put("mib", keeper.mib).put("seconds", keeper.seconds);
        nativeSeconds.ifPresent(seconds -> root.put("nativeSeconds", seconds));
        ArrayNode list = root.putArray("runs");
        for (SwapRun run : runs) {
            ObjectNode node = list.addObject().put("set", run.name());
            run.seconds().forEach(node.putObject("seconds")::put);
            moves(node.putObject("out"), run.out());
            moves(node.putObject("in"), run.in());
        }
        goals().write(root.putArray("figures"));
        defects.forEach(root.putArray("defects")::add);
        JsonReport.write(root, file);
    }

    private static void moves(ObjectNode node, Moves moves) {
        node.put("moves", moves.count()).put("failed", moves.failed()).put("bytes", moves.bytes());
        moves.medianRate().ifPresent(rate -> node.put("medianGBs", rate));
        moves.worstRate().ifPresent(rate -> node.put("worstGBs", rate));
    }
}
