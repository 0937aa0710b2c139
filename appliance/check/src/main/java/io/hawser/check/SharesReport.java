package io.hawser.check;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;

/**
 * The results of {@code hawser-check --shares}.
 *
 * @param bodies size of a kernel.
 * @param runs in the order of their measurement.
 * @param defects of the brokers' logs.
 */
record SharesReport(Instant began, Machine machine, SharesOptions options, int bodies, List<SharesRun> runs,
    List<String> defects) {
    private static final Target EQUAL = new Target(Target.Kind.AT_MOST, 1.05);
    private static final Target BY_WEIGHT = new Target(Target.Kind.AT_MOST, 10);
    private static final Target TAIL = new Target(Target.Kind.AT_MOST_NATIVE_TIMES, 1.2);
    private static final double SHM_WORK = 0.97;
    private static final double TCP_WORK = 0.95;

    /** Whether no broker reports a defect. */
    boolean isGood() {
        return defects.isEmpty();
    }

    /** A table for each set, the table of goals, and the defects. */
    String text(boolean markdown) {
        StringBuilder text = new StringBuilder();
        text.append(machine.text()).append('\n');
        for (ShareSet set : options.sets()) {
            List<SharesRun> ofSet = runs(set);
            if (!ofSet.isEmpty()) {
                text.append('\n').append(table(set, ofSet).text(markdown));
            }
        }
        text.append('\n').append(goals().text(markdown));
        defects.forEach(line -> text.append("defect: ").append(line).append('\n'));
        return text.toString();
    }

    private List<SharesRun> runs(ShareSet set) {
        return runs.stream().filter(run -> run.set().equals(set)).toList();
    }

    private static Table table(ShareSet set, List<SharesRun> ofSet) {
        List<String> head = new ArrayList<>(List.of(set.name(), "weight"));
        for (SharesRun run : ofSet) {
            head.addAll(List.of(run.way().label() + ": kernels", "median, ms", "99 %", "longest"));
        }
        Table table = new Table("l" + "r".repeat(head.size() - 1), head.toArray(String[]::new));
        for (int i = 0; i < set.tenants().size(); i++) {
            List<String> cells =
                new ArrayList<>(List.of("program " + (i + 1), Integer.toString(set.tenants().get(i).weight())));
            for (SharesRun run : ofSet) {
                TenantFigures tenant = run.tenants().get(i);
                cells.addAll(List.of(number("%,d", tenant.kernels()), number("%.3f", tenant.middleMs()),
                    number("%.3f", tenant.p99Ms()), number("%.3f", tenant.longestMs())));
            }
            table.row(cells.toArray(String[]::new));
        }
        row(table, "all", ofSet, run -> number("%,d", run.kernels()));
        row(table, "most over least, per weight", ofSet, run -> number("%.3f", run.mostOverLeast()));
        if (set.isWeighted()) {
            row(table, "parts", ofSet, SharesRun::partsText);
        }
        return table;
    }

    private static void row(Table table, String name, List<SharesRun> ofSet, Function<SharesRun, String> figure) {
        List<String> cells = new ArrayList<>(List.of(name, ""));
        ofSet.forEach(run -> cells.addAll(List.of(figure.apply(run), "", "", "")));
        table.row(cells.toArray(String[]::new));
    }

    private static String number(String format, Object value) {
        return String.format(Locale.ROOT, format, value);
    }

    /** The figures that have goals. */
    Goals goals() {
        Goals goals = new Goals();
        for (ShareSet set : options.sets()) {
            Optional<SharesRun> nativeRun = runs(set).stream().filter(run -> run.way() == Way.NATIVE).findFirst();
            runs(set).stream().filter(run -> run.way() != Way.NATIVE).forEach(run -> add(goals, run, nativeRun));
        }
        return goals;
    }

    private static void add(Goals goals, SharesRun run, Optional<SharesRun> nativeRun) {
        String name = run.set().name();
        if (run.set().isEqualFlood()) {
            goals.add(name + ": work done together, kernels", run.way(), run.kernels(),
                of(nativeRun, SharesRun::kernels),
                new Target(Target.Kind.AT_LEAST_NATIVE_TIMES, run.way() == Way.SHM ? SHM_WORK : TCP_WORK));
            goals.add(name + ": most over least", run.way(), run.mostOverLeast(), OptionalDouble.empty(), EQUAL);
        } else if (run.set().isWeighted()) {
            goals.add(name + ": deviation from 1 : 2 : 4, %", run.way(), Ratios.deviationPercent(run.parts()),
                OptionalDouble.empty(), BY_WEIGHT);
        } else if (run.set().isTail()) {
            goals.add(name + ": 99th percentile of program 1, ms", run.way(), firstP99(run),
                of(nativeRun, SharesReport::firstP99), TAIL);
        }
    }

    private static double firstP99(SharesRun run) {
        return run.tenants().getFirst().p99Ms();
    }

    private static OptionalDouble of(Optional<SharesRun> run, ToDoubleFunction<SharesRun> figure) {
        return run.stream().mapToDouble(figure).findFirst();
    }

    /** Writes everything as JSON. */
    void write(Path file) {
        ObjectNode root = new ObjectMapper().createObjectNode().put("began", began.toString()).put("good", isGood())
            .put("backend", options.backend()).put("seconds", options.seconds()).put("warmUpS", options.warmUpS())
            .put("kernelUs", options.kernelUs()).put("greedyMs", options.greedyMs()).put("bodies", bodies);
        machine.write(root.putObject("machine"));
        options.settings().forEach(root.putArray("settings")::add);
        ArrayNode list = root.putArray("runs");
        for (SharesRun run : runs) {
            ObjectNode node = list.addObject().put("set", run.set().name()).put("way", run.way().label())
                .put("kernels", run.kernels()).put("mostOverLeast", JsonReport.finite(run.mostOverLeast()));
            ArrayNode tenants = node.putArray("programs");
            run.tenants().forEach(tenant -> tenants.addObject().put("weight", tenant.weight())
                .put("kernels", tenant.kernels()).put("medianMs", tenant.middleMs()).put("p99Ms", tenant.p99Ms())
                .put("longestMs", tenant.longestMs()));
        }
        goals().write(root.putArray("figures"));
        defects.forEach(root.putArray("defects")::add);
        JsonReport.write(root, file);
    }
}
