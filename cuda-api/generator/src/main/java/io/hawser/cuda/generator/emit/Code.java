package io.hawser.cuda.generator.emit;

/** Text of a program: lines with indentation by blocks. */
public final class Code {
    private final StringBuilder text = new StringBuilder();
    private int depth;

    /** Appends a line, formatted when there are arguments. */
    public Code line(String format, Object... arguments) {
        String line = arguments.length == 0 ? format : String.format(format, arguments);
        if (!line.isEmpty()) {
            text.append("    ".repeat(depth)).append(line);
        }
        text.append('\n');
        return this;
    }

    /** Appends an empty line. */
    public Code line() {
        text.append('\n');
        return this;
    }

    /** Appends a line that opens a block, with the opening brace. */
    public Code open(String format, Object... arguments) {
        line((arguments.length == 0 ? format : String.format(format, arguments)) + " {");
        depth++;
        return this;
    }

    /** Ends a block. */
    public Code close() {
        return close("}");
    }

    /** Ends a block with the given text, for example {@code } name;}. */
    public Code close(String end) {
        depth--;
        return line(end);
    }

    /** Appends the lines of a text block unchanged, but indented. */
    public Code block(String lines) {
        lines.lines().forEach(this::line);
        return this;
    }

    @Override
    public String toString() {
        return text.toString();
    }
}
