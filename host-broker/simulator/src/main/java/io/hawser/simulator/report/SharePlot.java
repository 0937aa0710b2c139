package io.hawser.simulator.report;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** A plot of shares of GPU time against time, as SVG. */
public final class SharePlot {
    /** Columns of a plot. */
    public static final int BINS = 120;

    private static final int WIDTH = 760;
    private static final int HEIGHT = 300;
    private static final int LEFT = 48;
    private static final int TOP = 34;
    private static final int RIGHT = 170;
    private static final int BOTTOM = 40;
    private static final int MAX_LINES = 12;
    private static final String[] COLORS = {"#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#e377c2",
        "#7f7f7f", "#bcbd22", "#17becf", "#393b79", "#637939"};

    private final String title;
    private final double seconds;
    private final List<Line> lines = new ArrayList<>();

    /** A line: the share in each bin, 0 to 1. */
    private record Line(String name, double[] shares) {
    }

    /**
     * Starts without lines.
     *
     * @param seconds length of the time axis.
     */
    public SharePlot(String title, double seconds) {
        this.title = title;
        this.seconds = seconds;
    }

    /** Number of lines that a plot shows at most. */
    public static int maxLines() {
        return MAX_LINES;
    }

    /**
     * Adds a line; further ones than {@link #maxLines} are left out.
     *
     * @param shares one for each bin, 0 to 1, of equal parts of the time.
     */
    public void add(String name, double[] shares) {
        if (lines.size() < MAX_LINES) {
            lines.add(new Line(name, shares.clone()));
        }
    }

    /** The whole file. */
    public String svg() {
        double top = lines.stream().flatMapToDouble(line -> Arrays.stream(line.shares)).max().orElse(1);
        double max = Math.max(0.1, Math.ceil(top * 10 - 1e-6) / 10);
        StringBuilder svg = new StringBuilder();
        svg.append("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ").append(WIDTH).append(' ').append(HEIGHT)
            .append("\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\""
                + " fill=\"#fff\"/>\n");
        text(svg, LEFT, 18, "start", title);
        int ticks = 5;
        for (int i = 0; i <= ticks; i++) {
            double y = y(max * i / ticks, max);
            svg.append(String.format(Locale.ROOT, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n", LEFT, y,
                WIDTH - RIGHT));
            text(svg, LEFT - 6, y + 4, "end", String.format(Locale.ROOT, "%.0f %%", 100 * max * i / ticks));
            double x = LEFT + (double) (WIDTH - RIGHT - LEFT) * i / ticks;
            text(svg, x, HEIGHT - BOTTOM + 18, "middle", number(seconds * i / ticks));
        }
        text(svg, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 6, "middle", "seconds");
        for (int i = 0; i < lines.size(); i++) {
            line(svg, i, max);
        }
        return svg.append("</svg>\n").toString();
    }

    private void line(StringBuilder svg, int index, double max) {
        Line line = lines.get(index);
        svg.append("<path fill=\"none\" stroke=\"").append(COLORS[index]).append("\" stroke-width=\"1.5\" d=\"");
        for (int i = 0; i < line.shares.length; i++) {
            double x = LEFT + (WIDTH - RIGHT - LEFT) * (i + 0.5) / line.shares.length;
            svg.append(i == 0 ? "M" : "L").append(String.format(Locale.ROOT, "%.1f %.1f", x, y(line.shares[i], max)));
        }
        svg.append("\"/>\n");
        double y = TOP + 8 + 18.0 * index;
        svg.append(String.format(Locale.ROOT, "<path d=\"M%d %.1fh16\" stroke=\"%s\" stroke-width=\"3\"/>\n",
            WIDTH - RIGHT + 12, y, COLORS[index]));
        text(svg, WIDTH - RIGHT + 34, y + 4, "start", line.name);
    }

    private static double y(double share, double max) {
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * Math.min(share, max) / max;
    }

    private static String number(double value) {
        return String.format(Locale.ROOT, value == Math.rint(value) ? "%.0f" : "%.1f", value);
    }

    private static void text(StringBuilder svg, double x, double y, String anchor, String text) {
        svg.append(String.format(Locale.ROOT, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor))
            .append(text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")).append("</text>\n");
    }
}
