package io.hawser.reference;

import java.util.regex.MatchResult;
import java.util.regex.Pattern;

/** Text of a Markdown page, with lines of at most 120 columns outside tables. */
public final class Markdown implements Sheet {
    private static final int COLUMNS = 120;
    /** A short span of code is one word. */
    private static final Pattern WORD = Pattern.compile("[^\\s`]*`[^`\\n]{1,60}`[^\\s`]*|\\S+");
    private final StringBuilder text = new StringBuilder();

    /** Begins a page with its title. */
    public Markdown(String source, String title) {
        text.append(Page.notice(source)).append("# ").append(title).append('\n');
    }

    /** Adds a heading of the given level. */
    public Markdown heading(int level, String heading) {
        text.append('\n').append("#".repeat(level)).append(' ').append(heading).append('\n');
        return this;
    }

    @Override
    public Markdown section(String title) {
        return heading(2, title);
    }

    @Override
    public Markdown part(String title) {
        return heading(3, title);
    }

    @Override
    public Markdown term(String term, String meaning) {
        return item(term + ": " + meaning);
    }

    @Override
    public Markdown prose(String prose) {
        for (String paragraph : prose.strip().split("\n\\s*\n")) {
            text.append(wrapped(paragraph.strip(), "")).append('\n');
        }
        return this;
    }

    /** Adds an item of a list. */
    public Markdown item(String item) {
        text.append("- ").append(wrapped(item, "  "));
        return this;
    }

    /** Adds lines as they are. */
    public Markdown lines(String lines) {
        text.append(lines);
        return this;
    }

    /** Adds a block of code. */
    public Markdown code(String code) {
        text.append("```\n").append(code.strip()).append("\n```\n\n");
        return this;
    }

    /** Adds the head of a table. */
    public Markdown tableHead(String... cells) {
        tableRow(cells);
        text.append("|---".repeat(cells.length)).append("|\n");
        return this;
    }

    /** Adds a row of a table. */
    public Markdown tableRow(String... cells) {
        for (String cell : cells) {
            text.append("| ").append(cell.strip().replaceAll("\\s+", " ").replace("|", "\\|"));
            text.append(cell.isBlank() ? "" : " ");
        }
        text.append("|\n");
        return this;
    }

    @Override
    public String text() {
        return text.toString().replaceAll("\n{3,}", "\n\n").stripTrailing() + "\n";
    }

    /** Wraps a paragraph, with the given text before each line but the first; ends with a line break. */
    static String wrapped(String paragraph, String indent) {
        StringBuilder lines = new StringBuilder();
        int column = indent.length();
        for (String word : WORD.matcher(paragraph).results().map(MatchResult::group).toList()) {
            if (column > indent.length() && column + 1 + word.length() > COLUMNS) {
                lines.append('\n').append(indent);
                column = indent.length();
            } else if (column > indent.length()) {
                lines.append(' ');
                column++;
            }
            lines.append(word);
            column += word.length();
        }
        return lines.append('\n').toString();
    }
}
