package io.hawser.gpu.software.ptx;

import java.util.Arrays;

/**
 * Splits PTX text into tokens. A dot word ({@code .f32}, {@code .shared::cta}) is one token. The lexer skips debug
 * lines ({@code .loc}, {@code .file}, {@code @@DWARF}), because they end at the end of the line and not at a semicolon.
 */
final class Lexer {
    static final byte EOF = 0;
    static final byte ID = 1;
    static final byte DOT = 2;
    static final byte INT = 3;
    static final byte FP = 4;
    static final byte STRING = 5;
    static final byte PUNCT = 6;

    private final String text;
    private int at;
    private int line = 1;

    private byte[] kinds = new byte[1024];
    private String[] words = new String[1024];
    private int[] lines = new int[1024];
    private int count;

    Lexer(String text) {
        this.text = text;
    }

    /** The tokens of a text; the last is EOF. */
    record Tokens(byte[] kinds, String[] words, int[] lines, int count) {}

    Tokens run() throws PtxException {
        while (skipBlank()) {
            next();
        }
        add(EOF, "end of text");
        return new Tokens(kinds, words, lines, count);
    }

    private void add(byte kind, String word) {
        if (count == kinds.length) {
            kinds = Arrays.copyOf(kinds, count * 2);
            words = Arrays.copyOf(words, count * 2);
            lines = Arrays.copyOf(lines, count * 2);
        }
        kinds[count] = kind;
        words[count] = word;
        lines[count++] = line;
    }

    /** Skips white space and comments; returns false at the end of the text. */
    private boolean skipBlank() throws PtxException {
        while (at < text.length()) {
            char c = text.charAt(at);
            if (c == '\n') {
                line++;
                at++;
            } else if (c <= ' ') {
                at++;
            } else if (c == '/' && at + 1 < text.length() && text.charAt(at + 1) == '/') {
                skipLine();
            } else if (c == '/' && at + 1 < text.length() && text.charAt(at + 1) == '*') {
                int end = text.indexOf("*/", at + 2);
                if (end < 0) {
                    throw PtxException.invalid(line, "comment must end before the text does");
                }
                for (; at < end + 2; at++) {
                    line += text.charAt(at) == '\n' ? 1 : 0;
                }
            } else if (c == '#' || text.startsWith("@@", at)) {
                skipLine();
            } else {
                return true;
            }
        }
        return false;
    }

    private void skipLine() {
        int end = text.indexOf('\n', at);
        at = end < 0 ? text.length() : end;
    }

    private void next() throws PtxException {
        char c = text.charAt(at);
        int start = at;
        if (isNameStart(c)) {
            at++;
            skipName();
            add(ID, text.substring(start, at));
        } else if (c >= '0' && c <= '9') {
            number();
        } else if (c == '.' && at + 1 < text.length() && isNamePart(text.charAt(at + 1))) {
            dotWord();
        } else if (c == '"') {
            int end = text.indexOf('"', at + 1);
            if (end < 0) {
                throw PtxException.invalid(line, "string must end before the text does");
            }
            at = end + 1;
            add(STRING, text.substring(start + 1, end));
        } else if ("{}()[]<>,;:+-*/!|&~^@=_?%.".indexOf(c) >= 0) {
            at++;
            add(PUNCT, String.valueOf(c));
        } else {
            throw PtxException.invalid(line, "character must belong to PTX: code=" + (int) c);
        }
    }

    private void dotWord() {
        int start = at++;
        skipName();
        while (text.startsWith("::", at) && at + 2 < text.length() && isNamePart(text.charAt(at + 2))) {
            at += 2;
            skipName();
        }
        String word = text.substring(start + 1, at);
        if (word.equals("loc") || word.equals("file")) {
            skipLine();
        } else {
            add(DOT, word);
        }
    }

    private void skipName() {
        while (at < text.length() && isNamePart(text.charAt(at))) {
            at++;
        }
    }

    private void number() {
        int start = at;
        if (text.charAt(at) == '0' && at + 1 < text.length() && "xXfFdDbB".indexOf(text.charAt(at + 1)) >= 0) {
            boolean bits = "fFdD".indexOf(text.charAt(at + 1)) >= 0;
            at += 2;
            skipName();
            add(bits ? FP : INT, text.substring(start, at));
            return;
        }
        boolean fp = false;
        while (at < text.length()) {
            char c = text.charAt(at);
            boolean exponent = (c == '+' || c == '-') && (text.charAt(at - 1) == 'e' || text.charAt(at - 1) == 'E');
            if (c == '.' || c == 'e' || c == 'E' || exponent) {
                fp = true;
            } else if (!isNamePart(c)) {
                break;
            }
            at++;
        }
        add(fp ? FP : INT, text.substring(start, at));
    }

    private static boolean isNameStart(char c) {
        return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$' || c == '%';
    }

    private static boolean isNamePart(char c) {
        return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$';
    }
}
