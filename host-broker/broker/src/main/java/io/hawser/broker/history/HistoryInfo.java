package io.hawser.broker.history;

import java.time.Instant;
import java.util.List;

/** The points of one series; see openapi.yml. All lists have the same length; null is unknown. */
public record HistoryInfo(Instant from, int stepSeconds, List<Double> sessions, List<Double> usedBytes,
    List<Double> callsPerSecond, List<Double> roundTripsPerSecond, List<Double> bytesInPerSecond,
    List<Double> bytesOutPerSecond, List<Double> utilizationPercent, List<Double> waitedPercent) {}
