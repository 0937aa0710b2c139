package io.hawser.simulator.report;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** GPU times of tenants by bins of equal length, for a plot. */
public final class ShareSeries {
    private final double lengthNs;
    private final List<Entry> entries = new ArrayList<>();

    /** A tenant's times. */
    public static final class Entry {
        private final String group;
        private final String name;
        private final double[] ranNs = new double[SharePlot.BINS];

        private Entry(String group, String name) {
            this.group = group;
            this.name = name;
        }

        /** Adds GPU time to a bin, from 0. */
        public void add(int bin, double ns) {
            ranNs[bin] += ns;
        }
    }

    /**
     * Starts without tenants.
     *
     * @param lengthNs length of all bins together, over 0.
     */
    public ShareSeries(double lengthNs) {
        this.lengthNs = lengthNs;
    }

    /** Adds a tenant. */
    public Entry add(String group, String name) {
        Entry entry = new Entry(group, name);
        entries.add(entry);
        return entry;
    }

    /** A plot with a line for each tenant, or for each group with the mean of its tenants where they are many. */
    public SharePlot plot(String title) {
        SharePlot plot = new SharePlot(title, lengthNs / 1e9);
        boolean isEach = entries.size() <= SharePlot.maxLines();
        Map<String, List<Entry>> lines = new LinkedHashMap<>();
        for (Entry entry : entries) {
            lines.computeIfAbsent(isEach ? entry.name : entry.group, name -> new ArrayList<>()).add(entry);
        }
        lines.forEach((name, members) -> {
            double[] shares = new double[SharePlot.BINS];
            for (Entry member : members) {
                for (int i = 0; i < shares.length; i++) {
                    shares[i] += member.ranNs[i] / (lengthNs / SharePlot.BINS) / members.size();
                }
            }
            plot.add(isEach ? name : name + " (mean)", shares);
        });
        return plot;
    }
}
