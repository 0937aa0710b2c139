package io.hawser.gpu.software.ptx;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Reads the declarations of variables and parameters, with their initial values. */
final class DeclarationParser {
    // A guest's text chooses sizes: this limits one variable. Initialised bytes are on the heap.
    private static final long MAX_BYTES = 1L << 36;
    private static final long MAX_INITIAL_BYTES = 1L << 28;
    private static final int MAX_DEPTH = 64;
    private static final Map<String, Variable.Space> SPACES = Map.of("global", Variable.Space.GLOBAL,
        "const", Variable.Space.CONST, "shared", Variable.Space.SHARED, "shared::cta", Variable.Space.SHARED,
        "local", Variable.Space.LOCAL, "param", Variable.Space.PARAM);

    private final Cursor in;

    private PtxType element;
    private byte[] image;
    private int filled;
    private final List<Variable.Relocation> relocations = new ArrayList<>();

    DeclarationParser(Cursor in) {
        this.in = in;
    }

    static Variable.Space space(String word) {
        return SPACES.get(word);
    }

    /** Reads from the space to the end of the last declarator; the caller reads the rest of the statement. */
    List<Variable> variables(Variable.Linkage linkage) throws PtxException {
        Variable.Declaration common = prefix(linkage);
        List<Variable> result = new ArrayList<>();
        do {
            result.add(declarator(common));
        } while (in.skip(","));
        return result;
    }

    /** Reads a parameter: like a variable, but a comma after it belongs to the list. */
    Variable parameter() throws PtxException {
        if (in.isDot("reg")) {
            // Old style: a function with registers as parameters or results, which equal scalar parameters.
            in.take();
            Variable.Declaration declaration = new Variable.Declaration();
            declaration.space = Variable.Space.PARAM;
            declaration.type = in.expectType();
            declaration.name = in.expectName();
            return new Variable(declaration, declaration.type.bytes(), null, List.of());
        }
        return declarator(prefix(Variable.Linkage.NONE));
    }

    private Variable.Declaration prefix(Variable.Linkage linkage) throws PtxException {
        Variable.Declaration declaration = new Variable.Declaration();
        declaration.linkage = linkage;
        int line = in.line();
        String word = in.expectDot();
        declaration.space = SPACES.get(word);
        if (declaration.space == null) {
            throw PtxException.unsupported(line, "variables in ." + word);
        }
        while (declaration.type == null) {
            if (in.skipDot("align")) {
                declaration.alignment = alignment();
            } else if (in.skipDot("attribute")) {
                attribute(declaration);
            } else if (in.skipDot("v2")) {
                declaration.vector = 2;
            } else if (in.skipDot("v4")) {
                declaration.vector = 4;
            } else if (in.skipDot("ptr")) {
                skipPointer();
            } else {
                declaration.type = in.expectType();
                if (declaration.type == PtxType.PRED) {
                    throw in.invalid("a predicate can only be a register");
                }
            }
        }
        if (in.skipDot("ptr")) {
            skipPointer();
        }
        return declaration;
    }

    // .ptr{.space}{.align n} tells the optimiser the target of a kernel parameter; the software GPU ignores it.
    private void skipPointer() throws PtxException {
        while (in.kind() == Lexer.DOT && (SPACES.containsKey(in.word()) || in.isDot("align"))) {
            if (in.take().equals("align")) {
                alignment();
            }
        }
    }

    private int alignment() throws PtxException {
        int alignment = in.integer(1, 1024);
        if (Integer.bitCount(alignment) != 1) {
            throw in.invalid("alignment must be a power of two: " + alignment);
        }
        return alignment;
    }

    private void attribute(Variable.Declaration declaration) throws PtxException {
        in.expect("(");
        do {
            int line = in.line();
            String word = in.expectDot();
            if (word.equals("managed")) {
                declaration.managed = true;
            } else if (word.equals("unified")) {
                in.expect("(");
                in.integer();
                in.expect(",");
                in.integer();
                in.expect(")");
            } else {
                throw PtxException.unsupported(line, "attribute ." + word);
            }
        } while (in.skip(","));
        in.expect(")");
    }

    private Variable declarator(Variable.Declaration common) throws PtxException {
        Variable.Declaration declaration = new Variable.Declaration();
        declaration.space = common.space;
        declaration.type = common.type;
        declaration.alignment = common.alignment;
        declaration.vector = common.vector;
        declaration.linkage = common.linkage;
        declaration.managed = common.managed;
        declaration.name = in.expectName();
        long bytes = declaration.type.bytes() * (long) declaration.vector;
        long firstUnknown = -1;
        while (in.skip("[")) {
            declaration.array = true;
            if (in.skip("]")) {
                declaration.unsized = true;
                firstUnknown = bytes;
                continue;
            }
            long count = in.integer();
            if (count < 0 || count > MAX_BYTES || Math.multiplyHigh(bytes, count) != 0 || bytes * count > MAX_BYTES) {
                throw in.invalid("variable must have at most " + MAX_BYTES + " bytes: " + declaration.name);
            }
            bytes *= count;
            in.expect("]");
        }
        element = declaration.type;
        image = null;
        filled = 0;
        relocations.clear();
        if (in.skip("=")) {
            image = new byte[(int) Math.min(declaration.unsized ? 64 : bytes, MAX_INITIAL_BYTES)];
            initialiser(0);
            if (declaration.unsized) {
                declaration.unsized = false;
                bytes = Math.max(firstUnknown, filled);
                image = java.util.Arrays.copyOf(image, (int) bytes);
            } else if (filled > bytes) {
                throw in.invalid("initialiser must fit the variable: " + declaration.name);
            }
        } else if (declaration.unsized) {
            bytes = 0;
        }
        return new Variable(declaration, bytes, image, List.copyOf(relocations));
    }

    private void initialiser(int depth) throws PtxException {
        if (depth > MAX_DEPTH) {
            throw in.invalid("initialiser must nest at most " + MAX_DEPTH + " deep");
        }
        if (in.skip("{")) {
            if (!in.skip("}")) {
                do {
                    initialiser(depth + 1);
                } while (in.skip(","));
                in.expect("}");
            }
            return;
        }
        if (in.kind() == Lexer.ID) {
            relocation(0, element.bytes());
        } else if (in.kind() == Lexer.INT && in.word(1).equals("(")) {
            maskedRelocation();
        } else {
            put(value());
        }
    }

    private long value() throws PtxException {
        boolean negative = false;
        while (in.is("-") || in.is("+")) {
            negative ^= in.take().equals("-");
        }
        if (in.kind() == Lexer.FP) {
            double value = in.floating().value();
            value = negative ? -value : value;
            return switch (element) {
                case F64 -> Double.doubleToRawLongBits(value);
                case F32 -> Float.floatToRawIntBits((float) value);
                default -> throw in.invalid("floating constant must initialise f32 or f64");
            };
        }
        long value = in.integer();
        if (element == PtxType.F32 || element == PtxType.F64) {
            throw in.invalid("initial value must be a floating constant");
        }
        return negative ? -value : value;
    }

    private void put(long value) throws PtxException {
        int at = reserve(element.bytes());
        for (int i = 0; i < Math.min(8, element.bytes()); i++) {
            image[at + i] = (byte) (value >>> (8 * i));
        }
    }

    private int reserve(int bytes) throws PtxException {
        if (filled + bytes > image.length) {
            if (filled + bytes > MAX_INITIAL_BYTES || image.length >= MAX_INITIAL_BYTES) {
                throw in.invalid("initialised bytes must be at most " + MAX_INITIAL_BYTES);
            }
            image = java.util.Arrays.copyOf(image, Math.max(filled + bytes, image.length * 2));
        }
        int at = filled;
        filled += bytes;
        return at;
    }

    /** {@code 0xFF00(generic(symbol)+4)}: one byte of an address. */
    private void maskedRelocation() throws PtxException {
        long mask = in.integer();
        int shift = Long.numberOfTrailingZeros(mask) & ~7;
        if (mask == 0 || mask >>> shift != 0xFF || element.bytes() != 1) {
            throw in.invalid("mask must select one byte of an address: 0x" + Long.toHexString(mask));
        }
        in.expect("(");
        relocation(shift, 1);
        in.expect(")");
    }

    private void relocation(int shift, int bytes) throws PtxException {
        String symbol = in.expectName();
        if (symbol.equals("generic")) {
            in.expect("(");
            symbol = in.expectName();
            in.expect(")");
        }
        if (bytes < 4 && shift == 0 && element.bytes() != 1) {
            throw in.invalid("an address needs 4 or 8 bytes: " + symbol);
        }
        long addend = in.is("+") || in.is("-") ? in.integer() : 0;
        relocations.add(new Variable.Relocation(reserve(bytes), bytes, shift, symbol, addend));
    }
}
