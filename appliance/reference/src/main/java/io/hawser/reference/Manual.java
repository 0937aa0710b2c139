package io.hawser.reference;

import java.util.Locale;
import java.util.regex.Pattern;

/** A manual page in the language of man(7). */
public final class Manual implements Sheet {
    private static final Pattern CODE = Pattern.compile("`([^`]*)`");
    private static final Pattern LINK = Pattern.compile("\\[([^]]*)]\\([^)]*\\)");
    private final StringBuilder text = new StringBuilder();

    /** Begins a page, such as {@code hawserctl(1)}, with the line of its section NAME. */
    public Manual(String source, String name, int chapter, String kind, String purpose) {
        text.append(".\\\" Generated from ").append(source).append(" by ").append(Page.COMMAND)
            .append(". Do not edit.\n.TH ").append(name.toUpperCase(Locale.ROOT)).append(' ').append(chapter)
            .append(" \"\" Hawser \"").append(kind).append("\"\n.SH NAME\n").append(escaped(name)).append(" \\- ")
            .append(escaped(purpose)).append('\n');
    }

    private static String escaped(String plain) {
        return plain.replace("\\", "\\e").replace("-", "\\-");
    }

    /** Translates code to bold, and links to their text; a line that begins like a request gets a zero-width space. */
    private static String inline(String markdown) {
        String plain = LINK.matcher(markdown.strip()).replaceAll("$1");
        String roff = CODE.matcher(escaped(plain)).replaceAll("\\\\fB$1\\\\fR");
        StringBuilder lines = new StringBuilder();
        for (String line : Markdown.wrapped(roff, "").split("\n")) {
            lines.append(line.startsWith(".") || line.startsWith("'") ? "\\&" : "").append(line).append('\n');
        }
        return lines.toString();
    }

    @Override
    public Manual section(String title) {
        text.append(".SH \"").append(title.toUpperCase(Locale.ROOT)).append("\"\n");
        return this;
    }

    @Override
    public Manual part(String title) {
        text.append(".SS \"").append(escaped(title.replace("`", "")).replace("\"", "\\(dq")).append("\"\n");
        return this;
    }

    @Override
    public Manual prose(String prose) {
        String before = "";
        for (String paragraph : prose.strip().split("\n\\s*\n")) {
            text.append(before).append(inline(paragraph));
            before = ".PP\n";
        }
        return this;
    }

    @Override
    public Manual term(String term, String meaning) {
        text.append(".TP\n").append(inline(term)).append(inline(meaning));
        return this;
    }

    @Override
    public String text() {
        return text.toString();
    }
}
