package io.hawser.poolsimulator.report;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Panels with lines, one below the other, as SVG. */
public final class LinePlot {
    private static final int WIDTH = 760;
    private static final int PANEL_HEIGHT = 240;
    private static final int LEFT = 60;
    private static final int TOP = 34;
    private static final int RIGHT = 190;
    private static final int BOTTOM = 40;
    private static final int TICKS = 5;
    private static final String[] COLORS = {"#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b"};

    private final List<Panel> panels = new ArrayList<>();

    /** A point of a line. */
    public record Point(double x, double y) {}

    /** A line with its name. */
    private record Line(String name, List<Point> points) {}

    /** A panel with its axes, both from 0. */
    public static final class Panel {
        private final String title;
        private final String xName;
        private final String unit;
        private final List<Line> lines = new ArrayList<>();

        private Panel(String title, String xName, String unit) {
            this.title = title;
            this.xName = xName;
            this.unit = unit;
        }

        /** Adds a line; at most six have colours of their own. */
        public void line(String name, List<Point> points) {
            lines.add(new Line(name, List.copyOf(points)));
        }

        private double maxX() {
            return nice(lines.stream().flatMap(line -> line.points.stream()).mapToDouble(Point::x).max().orElse(1));
        }

        private double maxY() {
            return nice(lines.stream().flatMap(line -> line.points.stream()).mapToDouble(Point::y).max().orElse(1));
        }
    }

    /**
     * Adds a panel below the earlier ones.
     *
     * @param unit follows each number of the y axis.
     */
    public Panel panel(String title, String xName, String unit) {
        Panel panel = new Panel(title, xName, unit);
        panels.add(panel);
        return panel;
    }

    /** The least number of 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6 or 8 times a power of ten that is not less. */
    static double nice(double value) {
        if (value <= 0) {
            return 1;
        }
        double power = Math.pow(10, Math.floor(Math.log10(value)));
        for (double factor : new double[] {1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8}) {
            if (value <= factor * power * (1 + 1e-9)) {
                return factor * power;
            }
        }
        return 10 * power;
    }

    /** The whole file. */
    public String svg() {
        StringBuilder svg = new StringBuilder();
        svg.append("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ").append(WIDTH).append(' ')
            .append(PANEL_HEIGHT * panels.size()).append("\" font-family=\"sans-serif\" font-size=\"12\">\n"
                + "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
        for (int i = 0; i < panels.size(); i++) {
            panel(svg, panels.get(i), i * PANEL_HEIGHT);
        }
        return svg.append("</svg>\n").toString();
    }

    private static void panel(StringBuilder svg, Panel panel, int top) {
        double maxX = panel.maxX();
        double maxY = panel.maxY();
        text(svg, LEFT, top + 18, "start", panel.title);
        for (int i = 0; i <= TICKS; i++) {
            double y = y(maxY * i / TICKS, maxY, top);
            svg.append(String.format(Locale.ROOT, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n", LEFT, y,
                WIDTH - RIGHT));
            text(svg, LEFT - 6, y + 4, "end", number(maxY * i / TICKS) + " " + panel.unit);
            text(svg, x(maxX * i / TICKS, maxX), top + PANEL_HEIGHT - BOTTOM + 18, "middle",
                number(maxX * i / TICKS));
        }
        text(svg, (LEFT + WIDTH - RIGHT) / 2.0, top + PANEL_HEIGHT - 6, "middle", panel.xName);
        for (int i = 0; i < panel.lines.size(); i++) {
            Line line = panel.lines.get(i);
            String color = COLORS[i % COLORS.length];
            svg.append("<path fill=\"none\" stroke=\"").append(color).append("\" stroke-width=\"1.5\" d=\"");
            for (int p = 0; p < line.points.size(); p++) {
                Point point = line.points.get(p);
                svg.append(p == 0 ? 'M' : 'L').append(String.format(Locale.ROOT, "%.1f %.1f", x(point.x, maxX),
                    y(point.y, maxY, top)));
            }
            svg.append("\"/>\n");
            double y = top + TOP + 8 + 18.0 * i;
            svg.append(String.format(Locale.ROOT, "<path d=\"M%d %.1fh16\" stroke=\"%s\" stroke-width=\"3\"/>\n",
                WIDTH - RIGHT + 12, y, color));
            text(svg, WIDTH - RIGHT + 34, y + 4, "start", line.name);
        }
    }

    private static double x(double value, double max) {
        return LEFT + (WIDTH - RIGHT - LEFT) * value / max;
    }

    private static double y(double value, double max, int top) {
        return top + PANEL_HEIGHT - BOTTOM - (PANEL_HEIGHT - BOTTOM - TOP) * value / max;
    }

    private static String number(double value) {
        return Math.abs(value - Math.rint(value)) < 1e-6 ? String.format(Locale.ROOT, "%.0f", value)
            : String.format(Locale.ROOT, "%.3g", value);
    }

    private static void text(StringBuilder svg, double x, double y, String anchor, String text) {
        svg.append(String.format(Locale.ROOT, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor))
            .append(text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")).append("</text>\n");
    }
}
