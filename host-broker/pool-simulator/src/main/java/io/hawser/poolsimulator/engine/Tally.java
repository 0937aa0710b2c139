package io.hawser.poolsimulator.engine;

import io.hawser.broker.vgpu.PoolPlacement;
import io.hawser.poolsimulator.load.Arrival;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.HdrHistogram.Histogram;

/** The events of a run. For one thread. */
public final class Tally {
    private static final int BIN = 2500; // vGPUs
    private static final int DIGITS = 3;

    private final Histogram times = new Histogram(DIGITS);
    private final Histogram processorTimes = new Histogram(DIGITS);
    private final Map<Integer, Histogram> timesByCount = new TreeMap<>();
    private final Map<Integer, Integer> refusals = new TreeMap<>(); // by MiB
    private final List<Sample> samples = new ArrayList<>();
    private String refusal = "";
    private long digest = 1;
    private long deleted;
    private long taken;
    private long lastTakenMs = -1;
    private long dropped;

    void placed(long ns, long processorNs, int vgpus) {
        times.recordValue(ns);
        processorTimes.recordValue(processorNs);
        timesByCount.computeIfAbsent(vgpus / BIN * BIN, bin -> new Histogram(DIGITS)).recordValue(processorNs);
    }

    void homed(String vgpu, PoolPlacement.Home home) {
        digest = 31 * (31 * digest + vgpu.hashCode()) + home.gpus().hashCode();
    }

    void refused(Arrival arrival, String reason) {
        refusals.merge(arrival.memoryMib(), 1, Integer::sum);
        refusal = refusal.isEmpty() ? reason : refusal;
        digest = 31 * digest + 1;
    }

    void deleted() {
        deleted++;
    }

    void taken(int some, long nowMs) {
        taken += some;
        lastTakenMs = some > 0 ? nowMs : lastTakenMs;
    }

    void dropped(int some) {
        dropped += some;
    }

    void sampled(Sample sample) {
        samples.add(sample);
    }

    /** Times of the placements that succeeded, in nanoseconds. */
    public Histogram times() {
        return times;
    }

    /** Processor times of the same placements, in nanoseconds: those of a machine that does nothing else. */
    public Histogram processorTimes() {
        return processorTimes;
    }

    /** Processor times by the number of vGPUs at that time, rounded down. */
    public Map<Integer, Histogram> timesByCount() {
        return timesByCount;
    }

    /** Refused arrivals by memory in MiB. */
    public Map<Integer, Integer> refusals() {
        return refusals;
    }

    /** Why the first arrival was refused; empty for none. */
    public String refusal() {
        return refusal;
    }

    /** The pool at equal distances of time. */
    public List<Sample> samples() {
        return samples;
    }

    /** A hash of all homes and refusals, in their order. */
    public long digest() {
        return digest;
    }

    /** vGPUs that reached the end of their lives. */
    public long deletedCount() {
        return deleted;
    }

    /** vGPUs of silent brokers that got a new home. */
    public long takenCount() {
        return taken;
    }

    /** Time of the last of these; -1 for none. */
    public long lastTakenMs() {
        return lastTakenMs;
    }

    /** vGPUs that brokers dropped when they came back. */
    public long droppedCount() {
        return dropped;
    }
}
