package io.hawser.broker.metrics;

import io.prometheus.client.Collector;
import java.util.ArrayList;
import java.util.List;

/** The samples of one metric with its labels, under its name in Prometheus. */
final class Family {
    private final Collector.Type type;
    private final String name;
    private final String help;
    private final List<String> labels;
    private final List<Collector.MetricFamilySamples.Sample> samples = new ArrayList<>();

    private Family(Collector.Type type, String name, String help, String... labels) {
        this.type = type;
        this.name = name;
        this.help = help;
        this.labels = List.of(labels);
    }

    /** A metric that rises and falls. */
    static Family gauge(String name, String help, String... labels) {
        return new Family(Collector.Type.GAUGE, name, help, labels);
    }

    /** A metric that only grows; its samples get the suffix {@code _total}. */
    static Family counter(String name, String help, String... labels) {
        return new Family(Collector.Type.COUNTER, name, help, labels);
    }

    String name() {
        return name;
    }

    /** The names of the labels, in the order of {@link #add}'s values. */
    List<String> labels() {
        return labels;
    }

    /** One more sample; none when it is not known. */
    Family add(Number value, String... labelValues) {
        if (value != null) {
            String full = type == Collector.Type.COUNTER ? name + "_total" : name;
            samples.add(new Collector.MetricFamilySamples.Sample(full, labels, List.of(labelValues),
                value.doubleValue()));
        }
        return this;
    }

    /** The samples in the client library's form. */
    Collector.MetricFamilySamples samples() {
        return new Collector.MetricFamilySamples(name, type, help, samples);
    }
}
