package io.hawser.check;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** A table as text in columns or as Markdown. */
final class Table {
    private final boolean[] right;
    private final List<String[]> rows = new ArrayList<>();

    /** @param alignment one letter per column, l or r. */
    Table(String alignment, String... head) {
        right = new boolean[alignment.length()];
        for (int i = 0; i < right.length; i++) {
            right[i] = alignment.charAt(i) == 'r';
        }
        row(head);
    }

    /** Adds a row with one cell for each column. */
    void row(String... cells) {
        if (cells.length != right.length) {
            throw new IllegalArgumentException("a row must have " + right.length + " cells: " + Arrays.toString(cells));
        }
        rows.add(cells);
    }

    /** The whole table, with a final line break. */
    String text(boolean markdown) {
        StringBuilder text = new StringBuilder();
        if (markdown) {
            for (String[] cells : rows) {
                for (String cell : cells) {
                    text.append("| ").append(cell.replace("|", "\\|")).append(' ');
                }
                text.append("|\n");
                if (cells == rows.getFirst()) {
                    for (boolean r : right) {
                        text.append(r ? "|---:" : "|---");
                    }
                    text.append("|\n");
                }
            }
            return text.toString();
        }
        int[] widths = new int[right.length];
        rows.forEach(cells -> Arrays.setAll(widths, i -> Math.max(widths[i], cells[i].length())));
        for (String[] cells : rows) {
            StringBuilder line = new StringBuilder();
            for (int i = 0; i < cells.length; i++) {
                String gap = " ".repeat(widths[i] - cells[i].length());
                line.append(i == 0 ? "" : "  ").append(right[i] ? gap + cells[i] : cells[i] + gap);
            }
            text.append(line.toString().stripTrailing()).append('\n');
        }
        return text.toString();
    }
}
