package io.hawser.ctl.terminal;

import io.hawser.client.Text;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Aligned columns. A heading that begins with {@code >} aligns its column to the right, for numbers. */
public final class Table {
    private static final String GAP = "  ";

    private final String[] headings;
    private final boolean[] right;
    private final List<String[]> rows = new ArrayList<>();

    /** A table without rows. */
    public Table(String... headings) {
        this.headings = new String[headings.length];
        right = new boolean[headings.length];
        for (int i = 0; i < headings.length; i++) {
            right[i] = headings[i].startsWith(">");
            this.headings[i] = right[i] ? headings[i].substring(1) : headings[i];
        }
    }

    /** Adds a row; missing cells are empty. */
    public Table row(Object... cells) {
        String[] row = new String[headings.length];
        for (int i = 0; i < row.length; i++) {
            row[i] = i < cells.length ? Text.printable(String.valueOf(cells[i])) : "";
        }
        rows.add(row);
        return this;
    }

    /**
     * A table with the same columns, and one more behind the first.
     *
     * @param cells one for each row, in the rows' order.
     */
    public Table withSecond(String heading, List<String> cells) {
        List<String> wider = new ArrayList<>();
        for (int i = 0; i < headings.length; i++) {
            wider.add(right[i] ? ">" + headings[i] : headings[i]);
        }
        wider.add(1, heading);
        Table table = new Table(wider.toArray(String[]::new));
        for (int i = 0; i < rows.size(); i++) {
            List<Object> row = new ArrayList<>(List.of((Object[]) rows.get(i)));
            row.add(1, cells.get(i));
            table.row(row.toArray());
        }
        return table;
    }

    /** The heading and all rows, without trailing blanks. */
    public List<String> lines() {
        int[] widths = Arrays.stream(headings).mapToInt(Table::width).toArray();
        for (String[] row : rows) {
            for (int i = 0; i < row.length; i++) {
                widths[i] = Math.max(widths[i], width(row[i]));
            }
        }
        List<String> lines = new ArrayList<>();
        lines.add(line(headings, widths));
        rows.forEach(row -> lines.add(line(row, widths)));
        return lines;
    }

    private String line(String[] cells, int[] widths) {
        StringBuilder line = new StringBuilder();
        for (int i = 0; i < cells.length; i++) {
            String blanks = " ".repeat(widths[i] - width(cells[i]));
            line.append(i == 0 ? "" : GAP).append(right[i] ? blanks + cells[i] : cells[i] + blanks);
        }
        return line.toString().stripTrailing();
    }

    private static int width(String text) {
        return text.codePointCount(0, text.length());
    }
}
