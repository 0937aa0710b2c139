package io.hawser.broker.metrics;

import static org.junit.jupiter.api.Assertions.assertFalse;

import io.hawser.broker.Broker;
import io.hawser.broker.TestBroker;
import io.hawser.broker.admin.PoolView;
import io.hawser.broker.view.GpuInventory;
import io.hawser.broker.view.VgpuInventory;
import io.hawser.broker.web.WebDoor;
import io.hawser.reference.Markdown;
import io.hawser.reference.Page;
import io.micrometer.prometheus.PrometheusConfig;
import io.micrometer.prometheus.PrometheusMeterRegistry;
import io.prometheus.client.Collector;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Makes the page of the metrics from the registry, after the broker's own classes have registered in it. */
class MetricsReferenceTest {
    private static final Set<String> OF_HISTOGRAMS = Set.of("le", "quantile");

    @TempDir
    Path folder;

    /** The labels of a metric. A metric without a sample here (no sensor, no token) has its declared labels. */
    private static Set<String> labels(Collector.MetricFamilySamples metric, Map<String, List<String>> declared) {
        Set<String> labels = new LinkedHashSet<>(declared.getOrDefault(metric.name, List.of()));
        metric.samples.forEach(sample -> labels.addAll(sample.labelNames));
        labels.removeAll(OF_HISTOGRAMS);
        return labels;
    }

    private static String suffix(Collector.MetricFamilySamples metric) {
        return metric.type == Collector.Type.COUNTER ? "_total" : "";
    }

    private static String page(List<Collector.MetricFamilySamples> metrics, Map<String, List<String>> declared) {
        Markdown page = new Markdown("the broker's registry of metrics", "Metrics of the broker").prose("""
            The broker serves these metrics for Prometheus at `/q/metrics`. Totals include sessions that have ended, so
            a counter never shrinks while the broker runs. The same endpoint serves Quarkus' metrics of the JVM and
            the process, which this page omits.

            A histogram has the series `_bucket`, `_sum` and `_count`. The broker omits a sample whose value the
            machine does not provide, such as a GPU's temperature without NVIDIA's driver.
            """).lines("\n").tableHead("metric", "type", "labels", "meaning");
        Map<String, Collector.MetricFamilySamples> sorted = new TreeMap<>();
        metrics.stream().filter(m -> m.name.startsWith("hawser_")).forEach(m -> sorted.put(m.name, m));
        sorted.forEach((name, metric) -> {
            assertFalse(metric.help.isBlank(), "a metric must have a description: " + name);
            page.tableRow("`" + name + suffix(metric) + "`", metric.type.name().toLowerCase(Locale.ROOT),
                labels(metric, declared).stream().map(l -> "`" + l + "`").collect(Collectors.joining(", ")),
                metric.help);
        });
        return page.text();
    }

    private static Sources sources(Broker.Parts parts) {
        PoolView pool = new PoolView(parts.membership());
        GpuInventory gpus = new GpuInventory(parts.pools(), parts.sessions(), parts.gpuMonitor(), parts.vgpus(),
            parts.ledgers(), pool);
        return new Sources(parts.sessions(), parts.pools(), parts.regions(), gpus,
            new VgpuInventory(parts.vgpus(), parts.pools(), parts.ledgers(), parts.swaps(), pool), List::of);
    }

    @Test
    @SuppressWarnings("deprecation") // of Prometheus's simple client
    void shouldEqualTheCommittedPage() {
        PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
        Map<String, String> settings = Map.of();
        try (TestBroker broker = TestBroker.start(folder, "normal", settings)) {
            new WebDoor(TestBroker.config(folder, "normal", settings), registry);
            BrokerMetrics metrics = new BrokerMetrics(registry);
            Sources sources = sources(broker.broker());
            metrics.watch(sources, "", () -> true);
            Map<String, List<String>> declared = new ResourceCollector(sources, "", () -> true, new VgpuTotals())
                .families().stream().collect(Collectors.toMap(Family::name, Family::labels));
            new Page("appliance/docs/reference/metrics.md").check(
                page(Collections.list(registry.getPrometheusRegistry().metricFamilySamples()), declared));
        }
    }
}
