package io.hawser.poolsimulator;

import io.hawser.poolsimulator.engine.Sample;
import io.hawser.poolsimulator.engine.Tally;
import io.hawser.poolsimulator.report.LinePlot;
import io.hawser.simulator.report.TextTable;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.ToDoubleFunction;
import org.HdrHistogram.Histogram;

/** The results of a run as text and as a plot. */
final class PoolReport {
    private static final int ROWS = 12;
    private static final double US = 1000;

    private final Tally tally;

    PoolReport(Tally tally) {
        this.tally = tally;
    }

    /** A row for every tenth part of the time, then the totals. */
    String text(long violations) {
        TextTable table = new TextTable("time s", "vGPUs", "reserved", "fragmented", "homeless", "kept in use");
        List<Sample> samples = tally.samples();
        for (int i = 0; i < samples.size(); i += Math.max(1, (samples.size() - 1) / ROWS)) {
            Sample sample = samples.get(i);
            table.row(String.format(Locale.ROOT, "%.0f", sample.atMs() / 1000.0), String.valueOf(sample.vgpus()),
                percent(sample.reservedPart()), percent(sample.fragmentedPart()), String.valueOf(sample.homeless()),
                String.valueOf(sample.kept()));
        }
        Histogram times = tally.times();
        StringBuilder text = new StringBuilder(table.toString());
        text.append(String.format(Locale.ROOT, "placements: %d%n", times.getTotalCount()));
        text.append("time of a placement: ").append(quantiles(times)).append(", of the processor: ")
            .append(quantiles(tally.processorTimes())).append('\n');
        text.append(String.format(Locale.ROOT, "deleted: %d, refused: %d%s%n", tally.deletedCount(),
            tally.refusals().values().stream().mapToInt(Integer::intValue).sum(), tally.refusals().isEmpty() ? ""
                : ", by MiB: " + tally.refusals()));
        if (!tally.refusal().isEmpty()) {
            text.append("first refusal: ").append(tally.refusal()).append('\n');
        }
        if (tally.takenCount() > 0 || tally.droppedCount() > 0) {
            text.append(String.format(Locale.ROOT, "taken from silent brokers: %d, the last at %.1f s; dropped by "
                + "brokers that came back: %d%n", tally.takenCount(), tally.lastTakenMs() / 1000.0,
                tally.droppedCount()));
        }
        text.append(String.format(Locale.ROOT, "over-reservations: %d%ndigest of the homes: %016x%n", violations,
            tally.digest()));
        return text.toString();
    }

    private static String quantiles(Histogram times) {
        return us(times.getValueAtPercentile(50)) + " us (p50), " + us(times.getValueAtPercentile(99)) + " us (p99), "
            + us(times.getMaxValue()) + " us (max)";
    }

    private static String us(double ns) {
        return String.format(Locale.ROOT, "%.0f", ns / US);
    }

    private static String percent(double part) {
        return String.format(Locale.ROOT, "%.1f %%", 100 * part);
    }

    /** Memory and vGPUs without a home against time, and the time of a placement against the number of vGPUs. */
    String plot(String title, String size) {
        LinePlot plot = new LinePlot();
        LinePlot.Panel memory = plot.panel(title + ": memory of the brokers that answer", "seconds", "%");
        memory.line("reserved", points(sample -> 100 * sample.reservedPart()));
        memory.line("free on GPUs without " + size, points(sample -> 100 * sample.fragmentedPart()));
        LinePlot.Panel lost = plot.panel("vGPUs of silent brokers", "seconds", "");
        lost.line("in use, stay", points(Sample::kept));
        lost.line("without a new home", points(Sample::homeless));
        LinePlot.Panel times = plot.panel("processor time of a placement", "vGPUs in the pool", "us");
        List<LinePlot.Point> median = new ArrayList<>();
        List<LinePlot.Point> tail = new ArrayList<>();
        tally.timesByCount().forEach((vgpus, bin) -> {
            median.add(new LinePlot.Point(vgpus, bin.getValueAtPercentile(50) / US));
            tail.add(new LinePlot.Point(vgpus, bin.getValueAtPercentile(99) / US));
        });
        times.line("p50", median);
        times.line("p99", tail);
        return plot.svg();
    }

    private List<LinePlot.Point> points(ToDoubleFunction<Sample> value) {
        return tally.samples().stream().map(sample -> new LinePlot.Point(sample.atMs() / 1000.0,
            value.applyAsDouble(sample))).toList();
    }
}
