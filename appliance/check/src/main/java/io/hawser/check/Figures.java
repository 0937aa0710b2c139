package io.hawser.check;

import java.util.HashMap;
import java.util.Map;
import java.util.OptionalDouble;

/** The measured values, by name and way, and the limits that the machine reaches without CUDA. One thread. */
final class Figures {
    private final Map<Way, Map<String, Double>> values = new HashMap<>();
    private final Map<String, Double> means = new HashMap<>();
    private final Map<String, Double> limits = new HashMap<>();

    void put(Way way, String name, double value) {
        values.computeIfAbsent(way, w -> new HashMap<>()).put(name, value);
    }

    void putMean(Way way, String name, double mean) {
        means.put(way.label() + "/" + name, mean);
    }

    void putLimit(String name, double value) {
        limits.put(name, value);
    }

    OptionalDouble get(Way way, String name) {
        return of(values.getOrDefault(way, Map.of()).get(name));
    }

    /** The mean beside a median; empty if none was measured. */
    OptionalDouble mean(Way way, String name) {
        return of(means.get(way.label() + "/" + name));
    }

    /** The figure of a plain socket or of shared memory; empty for an unknown or empty name. */
    OptionalDouble limit(String name) {
        return of(limits.get(name));
    }

    boolean isEmpty() {
        return values.isEmpty();
    }

    private static OptionalDouble of(Double value) {
        return value == null ? OptionalDouble.empty() : OptionalDouble.of(value);
    }
}
