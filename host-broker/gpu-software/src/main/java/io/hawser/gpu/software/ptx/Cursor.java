package io.hawser.gpu.software.ptx;

/** A position in the tokens, with the reading steps that all parsers share. */
final class Cursor {
    private final Lexer.Tokens tokens;
    private int at;

    Cursor(Lexer.Tokens tokens) {
        this.tokens = tokens;
    }

    /** The current position, for {@link #goBack}. */
    int place() {
        return at;
    }

    /** Returns to an earlier position. */
    void goBack(int place) {
        at = place;
    }

    byte kind() {
        return tokens.kinds()[at];
    }

    byte kind(int ahead) {
        return tokens.kinds()[Math.min(at + ahead, tokens.count() - 1)];
    }

    String word() {
        return tokens.words()[at];
    }

    String word(int ahead) {
        return tokens.words()[Math.min(at + ahead, tokens.count() - 1)];
    }

    int line() {
        return tokens.lines()[at];
    }

    boolean atEnd() {
        return kind() == Lexer.EOF;
    }

    /** Returns the current word and advances to the next. */
    String take() {
        String word = word();
        if (at < tokens.count() - 1) {
            at++;
        }
        return word;
    }

    boolean is(String punctuation) {
        return kind() == Lexer.PUNCT && word().equals(punctuation);
    }

    boolean isDot(String name) {
        return kind() == Lexer.DOT && word().equals(name);
    }

    boolean skip(String punctuation) {
        if (is(punctuation)) {
            take();
            return true;
        }
        return false;
    }

    boolean skipDot(String name) {
        if (isDot(name)) {
            take();
            return true;
        }
        return false;
    }

    void expect(String punctuation) throws PtxException {
        if (!skip(punctuation)) {
            throw invalid("'" + punctuation + "' must stand here, not '" + word() + "'");
        }
    }

    String expectName() throws PtxException {
        if (kind() != Lexer.ID) {
            throw invalid("a name must stand here, not '" + word() + "'");
        }
        return take();
    }

    String expectDot() throws PtxException {
        if (kind() != Lexer.DOT) {
            throw invalid("a dot word must stand here, not '" + word() + "'");
        }
        return take();
    }

    PtxType expectType() throws PtxException {
        int line = line();
        String word = expectDot();
        PtxType type = PtxType.byName(word);
        if (type == null) {
            throw PtxException.unsupported(line, "type ." + word);
        }
        return type;
    }

    /** Reads an integer with its signs. */
    long integer() throws PtxException {
        boolean negative = false;
        while (is("-") || is("+")) {
            negative ^= take().equals("-");
        }
        if (kind() != Lexer.INT) {
            throw invalid("an integer must stand here, not '" + word() + "'");
        }
        long value = parseInteger(take());
        return negative ? -value : value;
    }

    /** Reads a small positive integer, such as an alignment or a thread count. */
    int integer(long least, long most) throws PtxException {
        long value = integer();
        if (value < least || value > most) {
            throw invalid("number must be from " + least + " to " + most + ": " + value);
        }
        return (int) value;
    }

    private long parseInteger(String text) throws PtxException {
        String digits = text.endsWith("U") || text.endsWith("u") ? text.substring(0, text.length() - 1) : text;
        int radix = 10;
        if (digits.startsWith("0x") || digits.startsWith("0X")) {
            radix = 16;
            digits = digits.substring(2);
        } else if (digits.startsWith("0b") || digits.startsWith("0B")) {
            radix = 2;
            digits = digits.substring(2);
        } else if (digits.length() > 1 && digits.charAt(0) == '0') {
            radix = 8;
        }
        try {
            return Long.parseUnsignedLong(digits, radix);
        } catch (NumberFormatException e) {
            throw invalid("integer must have 64 bits or fewer: " + text);
        }
    }

    /** Reads a floating constant. */
    Operand.FpImm floating() throws PtxException {
        String text = take();
        try {
            if (text.startsWith("0f") || text.startsWith("0F")) {
                return new Operand.FpImm(exactBits(text, 8), true);
            }
            if (text.startsWith("0d") || text.startsWith("0D")) {
                return new Operand.FpImm(exactBits(text, 16), false);
            }
            return new Operand.FpImm(Double.doubleToRawLongBits(Double.parseDouble(text)), false);
        } catch (NumberFormatException e) {
            throw invalid("floating constant must be a number: " + text);
        }
    }

    private static long exactBits(String text, int digits) {
        if (text.length() != digits + 2) {
            throw new NumberFormatException(text);
        }
        return Long.parseUnsignedLong(text.substring(2), 16);
    }

    PtxException invalid(String rule) {
        return PtxException.invalid(line(), rule);
    }

    /** Skips a block with its nested blocks; the cursor is on the opening brace or parenthesis. */
    void skipBlock(String open, String close) throws PtxException {
        expect(open);
        for (int depth = 1; depth > 0;) {
            if (atEnd()) {
                throw invalid("'" + open + "' must be closed");
            }
            depth += is(open) ? 1 : is(close) ? -1 : 0;
            take();
        }
    }

    /** Skips to the position after the next semicolon. */
    void skipStatement() throws PtxException {
        while (!skip(";")) {
            if (atEnd()) {
                throw invalid("statement must end with ';'");
            }
            take();
        }
    }
}
