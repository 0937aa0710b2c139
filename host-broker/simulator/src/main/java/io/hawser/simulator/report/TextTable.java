package io.hawser.simulator.report;

import java.util.ArrayList;
import java.util.List;

/** A table in text: Markdown with aligned columns. */
public final class TextTable {
    private final List<List<String>> rows = new ArrayList<>();

    /** Starts with the heads of the columns. */
    public TextTable(String... heads) {
        rows.add(List.of(heads));
    }

    /** Adds a row with as many cells as there are heads. */
    public void row(String... cells) {
        if (cells.length != rows.getFirst().size()) {
            throw new IllegalArgumentException("a row must have a cell for each head: cells=" + cells.length);
        }
        rows.add(List.of(cells));
    }

    @Override
    public String toString() {
        int columns = rows.getFirst().size();
        int[] widths = new int[columns];
        for (List<String> row : rows) {
            for (int i = 0; i < columns; i++) {
                widths[i] = Math.max(widths[i], row.get(i).length());
            }
        }
        StringBuilder text = new StringBuilder();
        for (int r = 0; r < rows.size(); r++) {
            text.append('|');
            for (int i = 0; i < columns; i++) {
                String cell = rows.get(r).get(i);
                text.append(' ').append(cell).append(" ".repeat(widths[i] - cell.length())).append(" |");
            }
            text.append('\n');
            if (r == 0) {
                text.append('|');
                for (int width : widths) {
                    text.append("-".repeat(width + 2)).append('|');
                }
                text.append('\n');
            }
        }
        return text.toString();
    }
}
