package io.hawser.check;

import com.fasterxml.jackson.databind.JsonNode;
import io.hawser.check.ProgramResult.Verdict;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;

/**
 * The runs of one case.
 *
 * @param script file name of its script, without the ending.
 * @param name of the case.
 * @param runs of the script by way, one or more each.
 * @param roundTripsPerStep by carrier; absent for a case without steps.
 */
record FrameworkCase(String script, String name, Map<Way, List<FrameworkRun>> runs,
    Map<Way, Double> roundTripsPerStep) {

    private Collection<FrameworkRun> all() {
        return runs.values().stream().flatMap(List::stream).toList();
    }

    /** The number of steps that it repeats; 0 for none. */
    int steps() {
        return all().stream().map(run -> run.cases().get(name)).filter(line -> line != null).findFirst()
            .map(line -> line.path("steps").asInt()).orElse(0);
    }

    /** The first run's result that every other is compared with: natively, else over the first carrier. */
    private FrameworkRun reference() {
        return runs.getOrDefault(Way.NATIVE, runs.values().iterator().next()).getFirst();
    }

    Verdict verdict(Way way) {
        List<FrameworkRun> ofWay = runs.get(way);
        FrameworkRun reference = reference();
        if (ofWay.stream().anyMatch(run -> run.program().hung() && !run.cases().containsKey(name))) {
            return Verdict.HUNG;
        }
        if (way == Way.NATIVE) {
            return reference.failure(name).isEmpty() ? Verdict.RIGHT : Verdict.NOT_HERE;
        }
        if (runs.containsKey(Way.NATIVE) && !reference.failure(name).isEmpty()) {
            return Verdict.NOT_HERE;
        }
        return ofWay.stream().allMatch(run -> run.failure(name).isEmpty() && isOnly(run, way) && agrees(run))
            ? Verdict.RIGHT : Verdict.WRONG;
    }

    private static boolean isOnly(FrameworkRun run, Way way) {
        return run.program().carriers().equals(List.of(way.label()));
    }

    private boolean agrees(FrameworkRun run) {
        JsonNode wanted = reference().cases().get(name);
        return wanted != null && FrameworkRun.agree(wanted.path("result"), run.cases().get(name).path("result"),
            wanted.path("tolerance").asDouble());
    }

    /** The first thing that is wrong over a way; empty if nothing is. */
    String remark(Way way) {
        if (!verdict(way).isFailure()) {
            return "";
        }
        for (FrameworkRun run : runs.get(way)) {
            if (!run.failure(name).isEmpty()) {
                return run.failure(name);
            }
            if (!isOnly(run, way)) {
                return "no session over this carrier: " + run.program().carriers();
            }
            if (!agrees(run)) {
                return "the result differs: " + run.cases().get(name).path("result") + ", wanted "
                    + reference().cases().get(name).path("result");
            }
        }
        return "";
    }

    /** The median of the seconds of its steps; empty if it measures none. */
    OptionalDouble seconds(Way way) {
        double[] sorted = runs.getOrDefault(way, List.of()).stream().map(run -> run.cases().get(name))
            .filter(line -> line != null && line.has("seconds")).mapToDouble(line -> line.get("seconds").asDouble())
            .sorted().toArray();
        return sorted.length == 0 ? OptionalDouble.empty()
            : OptionalDouble.of((sorted[(sorted.length - 1) / 2] + sorted[sorted.length / 2]) / 2);
    }
}
