package io.hawser.simulator.report;

import io.hawser.simulator.engine.Durations;
import java.util.DoubleSummaryStatistics;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.HdrHistogram.Histogram;

/**
 * The results of a run: a table with a row for each group of tenants, and totals.
 *
 * @param tenants at least one.
 * @param lengthNs of the run, over 0.
 * @param gpus their number.
 */
public record Results(List<TenantResult> tenants, double lengthNs, int gpus) {
    private static final double FEW = 1e-9;

    /** Prints a row for each group; with {@code isEach} for each tenant. */
    public String table(boolean isEach) {
        Map<TenantResult, Double> asked = asked();
        Function<TenantResult, String> key = isEach ? TenantResult::vgpu : TenantResult::group;
        Map<String, List<TenantResult>> groups = tenants.stream()
            .collect(Collectors.groupingBy(key, LinkedHashMap::new, Collectors.toList()));
        TextTable table = new TextTable(isEach ? "vGPU" : "load", "sessions", "asked", "got", "got of asked",
            "wait p50", "p99", "max", "turns/s", "lost");
        groups.forEach((name, members) -> table.row(name, String.valueOf(members.size()),
            percent(members.stream().mapToDouble(asked::get).average().orElse(0)),
            percent(members.stream().mapToDouble(TenantResult::ranNs).average().orElse(0) / lengthNs),
            range(ratios(members, asked)), wait(members, 50), wait(members, 99),
            Durations.format(members.stream().mapToLong(TenantResult::longestWaitNs).max().orElse(0)),
            rate(members.stream().mapToLong(TenantResult::turns).sum()),
            String.valueOf(members.stream().mapToLong(TenantResult::lostTurns).sum())));
        return table.toString();
    }

    /** One line about all GPUs. */
    public String summary() {
        return String.format(Locale.ROOT, "%d GPU%s, %s, used for %s of the time, got of asked: %s",
            gpus, gpus == 1 ? "" : "s", Durations.format(lengthNs), percent(usedPart()), range(ratios()));
    }

    /** The part of the GPUs' time in which they ran kernels, 0 to 1. */
    public double usedPart() {
        return tenants.stream().mapToDouble(tenant -> tenant.ranNs() * tenant.gpus().size()).sum() / lengthNs / gpus;
    }

    /** Parts of the work done that tenants had, divided by the parts that they asked for. */
    public DoubleSummaryStatistics ratios() {
        return ratios(tenants, asked());
    }

    /** All waits. */
    public Histogram waits() {
        return waits(tenants);
    }

    /** The longest wait, also of waits that have not ended. */
    public long longestWaitNs() {
        return tenants.stream().mapToLong(TenantResult::longestWaitNs).max().orElse(0);
    }

    /** All turns. */
    public long turns() {
        return tenants.stream().mapToLong(TenantResult::turns).sum();
    }

    /** All turns in which their holders launched nothing. */
    public long lostTurns() {
        return tenants.stream().mapToLong(TenantResult::lostTurns).sum();
    }

    /** A part as text: 12.5 %. */
    public static String percent(double part) {
        return String.format(Locale.ROOT, "%.1f %%", 100 * part);
    }

    /** The least and the most as text. */
    public static String range(DoubleSummaryStatistics values) {
        if (values.getCount() == 0) {
            return "-";
        }
        String least = String.format(Locale.ROOT, "%.2f", values.getMin());
        String most = String.format(Locale.ROOT, "%.2f", values.getMax());
        return least.equals(most) ? least : least + " to " + most;
    }

    private static String wait(List<TenantResult> members, double percentile) {
        Histogram waits = waits(members);
        return waits.getTotalCount() == 0 ? "-" : Durations.format(waits.getValueAtPercentile(percentile));
    }

    private static Histogram waits(List<TenantResult> members) {
        Histogram all = new Histogram(members.getFirst().waits());
        all.reset();
        members.forEach(member -> all.add(member.waits()));
        return all;
    }

    private String rate(long count) {
        return String.format(Locale.ROOT, "%.0f", count * 1e9 / lengthNs);
    }

    private DoubleSummaryStatistics ratios(List<TenantResult> members, Map<TenantResult, Double> asked) {
        Map<Integer, Double> ranByGpu = new HashMap<>();
        tenants.forEach(tenant -> ranByGpu.merge(tenant.gpus().getFirst(), tenant.ranNs(), Double::sum));
        return members.stream().filter(TenantResult::isActive).mapToDouble(member -> member.ranNs()
            / (ranByGpu.get(member.gpus().getFirst()) + FEW) / asked.get(member)).summaryStatistics();
    }

    /**
     * The part of the time of its first GPU that each tenant's weight stands for, among vGPUs with sessions there that
     * launched or wanted to. Sessions of one vGPU divide its part.
     */
    private Map<TenantResult, Double> asked() {
        Map<Integer, List<TenantResult>> byGpu = tenants.stream().filter(TenantResult::isActive)
            .collect(Collectors.groupingBy(tenant -> tenant.gpus().getFirst()));
        Map<TenantResult, Double> asked = new IdentityHashMap<>();
        tenants.forEach(tenant -> asked.put(tenant, 0.0));
        byGpu.values().forEach(sessions -> {
            TreeSet<Double> times = new TreeSet<>(List.of(0.0, lengthNs));
            sessions.forEach(session -> {
                times.add(Math.min(lengthNs, session.fromNs()));
                times.add(Math.min(lengthNs, session.untilNs()));
            });
            double from = 0;
            for (double to : times) {
                add(asked, sessions, from, to);
                from = to;
            }
        });
        return asked;
    }

    private void add(Map<TenantResult, Double> asked, List<TenantResult> sessions, double fromNs, double toNs) {
        Map<String, List<TenantResult>> present = sessions.stream()
            .filter(session -> session.fromNs() <= fromNs && session.untilNs() >= toNs)
            .collect(Collectors.groupingBy(TenantResult::vgpu));
        double all = present.values().stream().mapToDouble(its -> its.getFirst().weight()).sum();
        present.values().forEach(its -> its.forEach(session -> asked.merge(session,
            session.weight() / all / its.size() * (toNs - fromNs) / lengthNs, Double::sum)));
    }
}
