package io.hawser.check;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.stream.Collectors;

/** The results as text. */
final class TextReport {
    private final Results results;
    private final boolean markdown;
    private final StringBuilder text = new StringBuilder();

    private TextReport(Results results, boolean markdown) {
        this.results = results;
        this.markdown = markdown;
    }

    /** The whole report. */
    static String of(Results results, boolean markdown) {
        TextReport report = new TextReport(results, markdown);
        report.head();
        if (!results.programs().isEmpty()) {
            report.programs();
        }
        if (!results.figures().isEmpty()) {
            report.figures();
        }
        report.summary();
        return report.text.toString();
    }

    private void head() {
        title("hawser-check " + results.version());
        line("%s", results.machine().text());
        line("GPU: %s, compute capability %s, CUDA %s, %s MiB", results.gpu().path("device").asText(),
            results.gpu().path("computeCapability").asText(), results.gpu().path("cudaVersion").asText(),
            results.gpu().path("memoryMiB").asText());
        line("%s, in %.0f s", results.began().toString().substring(0, 16).replace('T', ' ') + " UTC",
            results.seconds());
        if (!results.nativeMissing().isEmpty()) {
            line("Nothing ran natively: %s.", results.nativeMissing());
        }
    }

    private void title(String title) {
        text.append(markdown ? "## " + title + "\n\n" : title + "\n");
    }

    private void line(String format, Object... arguments) {
        text.append(String.format(Locale.ROOT, format, arguments)).append(markdown ? "  \n" : "\n");
    }

    private boolean hasNative() {
        return results.nativeMissing().isEmpty();
    }

    private void programs() {
        text.append('\n');
        title("Programs");
        List<String> head = new ArrayList<>(List.of("program"));
        StringBuilder alignment = new StringBuilder("l");
        if (hasNative()) {
            head.addAll(List.of("native", "s"));
            alignment.append("lr");
        }
        for (Way way : results.carriers()) {
            head.addAll(List.of(way.label(), "s", "calls"));
            alignment.append("lrr");
        }
        head.add("remark");
        Table table = new Table(alignment + "l", head.toArray(new String[0]));
        for (ProgramResult program : results.programs()) {
            List<String> cells = new ArrayList<>(List.of(program.name()));
            if (hasNative()) {
                ProgramRun run = program.runs().get(Way.NATIVE);
                cells.add(run == null ? "-" : program.verdict(Way.NATIVE).label());
                cells.add(run == null ? "-" : number("%.2f", run.seconds()));
            }
            for (Way way : results.carriers()) {
                ProgramRun run = program.runs().get(way);
                cells.addAll(List.of(program.verdict(way).label(), number("%.2f", run.seconds()),
                    Long.toString(run.calls())));
            }
            cells.add(program.remark());
            table.row(cells.toArray(new String[0]));
        }
        text.append(table.text(markdown));
    }

    private void figures() {
        text.append('\n');
        title("Figures");
        List<String> head = new ArrayList<>(List.of("measure", "unit"));
        StringBuilder alignment = new StringBuilder("ll");
        if (hasNative()) {
            head.add("native");
            alignment.append('r');
        }
        for (Way way : results.carriers()) {
            head.add(way.label());
            alignment.append('r');
            if (hasNative()) {
                head.add("/native");
                alignment.append('r');
            }
            head.addAll(List.of(way == Way.TCP ? "socket (several)" : "memory", "target", "reached"));
            alignment.append("rll");
        }
        Table table = new Table(alignment.toString(), head.toArray(new String[0]));
        for (Measure measure : results.measures()) {
            if (isMeasured(measure)) {
                table.row(cells(measure));
            }
        }
        text.append(table.text(markdown));
    }

    private boolean isMeasured(Measure measure) {
        return results.carriers().stream().anyMatch(way -> results.figures().get(way, measure.name()).isPresent());
    }

    private String[] cells(Measure measure) {
        List<String> cells = new ArrayList<>(List.of(measure.label(), measure.unit()));
        OptionalDouble nativeValue = shown(measure, results.figures().get(Way.NATIVE, measure.name()));
        if (hasNative()) {
            cells.add(value(nativeValue));
        }
        for (Way way : results.carriers()) {
            OptionalDouble value = shown(measure, results.figures().get(way, measure.name()));
            cells.add(value(value));
            if (hasNative()) {
                cells.add(value.isPresent() && nativeValue.isPresent() && nativeValue.getAsDouble() > 0
                    ? number("%.2f", value.getAsDouble() / nativeValue.getAsDouble()) : "-");
            }
            cells.add(limit(measure, way));
            cells.add(measure.target(way).text());
            cells.add(reached(results, measure, way).map(r -> r ? "yes" : "no").orElse("-"));
        }
        return cells.toArray(new String[0]);
    }

    private String limit(Measure measure, Way way) {
        if (way != Way.TCP) {
            return value(shown(measure, results.figures().limit(measure.memory())));
        }
        OptionalDouble several = results.figures().limit(measure.sockets());
        return value(shown(measure, results.figures().limit(measure.socket())))
            + (several.isPresent() ? " (" + value(shown(measure, several)) + ")" : "");
    }

    /** Whether a carrier reaches its target; empty without a target, or without a value to compare with. */
    static Optional<Boolean> reached(Results results, Measure measure, Way way) {
        Figures figures = results.figures();
        OptionalDouble value = shown(measure, figures.get(way, measure.name()));
        return value.isEmpty() ? Optional.empty() : measure.target(way).isReached(value.getAsDouble(),
            shown(measure, figures.get(Way.NATIVE, measure.name())), shown(measure, figures.limit(measure.socket())));
    }

    private static OptionalDouble shown(Measure measure, OptionalDouble figure) {
        return figure.isEmpty() ? figure : OptionalDouble.of(measure.shown(figure.getAsDouble()));
    }

    /** A figure with the digits that its size needs; - if there is none. */
    static String value(OptionalDouble value) {
        if (value.isEmpty()) {
            return "-";
        }
        double v = value.getAsDouble();
        return number(v >= 1000 ? "%,.0f" : v >= 100 ? "%.0f" : v >= 10 ? "%.1f" : v >= 1 ? "%.2f" : "%.3f", v);
    }

    private static String number(String format, double value) {
        return String.format(Locale.ROOT, format, value);
    }

    private void summary() {
        text.append('\n');
        title("Summary");
        if (!results.programs().isEmpty()) {
            line("%d programs over %s: %d runs right, %d in part, %d refused, %d wrong, %d hung%s.",
                results.programs().size(),
                results.carriers().stream().map(Way::label).collect(Collectors.joining(" and ")),
                results.count(ProgramResult.Verdict.RIGHT), results.count(ProgramResult.Verdict.IN_PART),
                results.count(ProgramResult.Verdict.REFUSED),
                results.count(ProgramResult.Verdict.WRONG), results.count(ProgramResult.Verdict.HUNG),
                hasNative() ? ", compared with native runs" : ", compared with each other");
        }
        if (!results.figures().isEmpty()) {
            for (Way way : results.carriers()) {
                List<Boolean> all = results.measures().stream()
                    .flatMap(measure -> reached(results, measure, way).stream()).toList();
                line("%s: %d of %d targets reached.", way.label(), all.stream().filter(r -> r).count(), all.size());
            }
        }
        results.failures().forEach(failure -> line("Not measured: %s", failure.lines().findFirst().orElse("")));
        line("%s", results.isGood() ? "All agree." : "NOT all agree.");
    }
}
