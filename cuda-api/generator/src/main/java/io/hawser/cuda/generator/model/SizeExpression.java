package io.hawser.cuda.generator.model;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Stream;

/**
 * A size in bytes as an expression over parameters: numbers, names, {@code record.field}, {@code +}, {@code *},
 * parentheses and {@code box(pitch, rows, width)}, the span of rows in memory. Both languages evaluate it in 64 bits
 * and saturate at the largest value instead of wrapping.
 *
 * <p>Only the worker evaluates sizes of device memory. They may also have {@code pick(number, ifZero, otherwise)},
 * {@code matrix(ld, rows, columns, elementBytes)} and {@code vector(n, increment, elementBytes)}. {@code triangle(n)}
 * is the number of elements of a packed triangle. {@code element(cudaDataType)} is the bytes of an element, and
 * {@code compute(cublasComputeType_t, cudaDataType)} those of a number of a product; sizes of numbers have both.
 * {@code sum(array, elementBytes)} adds the integers of an array of the call. {@code min(a, b)} is the smaller one, and
 * {@code job(letter, ifA, ifS)} what LAPACK's letter for singular vectors asks for, 0 for any other letter.
 */
public sealed interface SizeExpression {
    /** A number. */
    record Constant(long value) implements SizeExpression {
    }

    /** A parameter, or a field of one: {@code parameter.field}. */
    record Reference(String name) implements SizeExpression {
    }

    /** {@code add}, {@code multiply} or an operation with a name, of operands. */
    record Operation(String name, List<SizeExpression> operands) implements SizeExpression {
    }

    /** The operations with a name: the number of their operands. */
    Map<String, Integer> OPERATIONS = Map.of("box", 3, "pick", 3, "matrix", 4, "vector", 3, "triangle", 1,
        "element", 1, "compute", 2, "sum", 2, "min", 2, "job", 3);

    /** Parses a text; error messages name the {@code owner}. */
    static SizeExpression parse(String owner, String text) {
        return new Parser(owner, text).parse();
    }

    /** Names in the expression. */
    default List<String> references() {
        return switch (this) {
            case Constant ignored -> List.of();
            case Reference reference -> List.of(reference.name());
            case Operation operation -> operation.operands().stream().flatMap(o -> o.references().stream()).toList();
        };
    }

    /** Operations in the expression. */
    default List<String> operations() {
        return this instanceof Operation operation ? Stream.concat(Stream.of(operation.name()),
            operation.operands().stream().flatMap(o -> o.operations().stream())).toList() : List.of();
    }

    /**
     * Writes the expression in a language.
     *
     * @param reference gives the text of a parameter's value as an unsigned 64-bit number.
     * @param prefix text before the names of operations.
     * @param suffix text after numbers.
     */
    default String emit(Function<String, String> reference, String prefix, String suffix) {
        return switch (this) {
            case Constant constant -> constant.value() + suffix;
            case Reference used -> reference.apply(used.name());
            case Operation operation -> prefix + operation.name() + "(" + String.join(", ",
                operation.operands().stream().map(o -> o.emit(reference, prefix, suffix)).toList()) + ")";
        };
    }

    /** Evaluates the size of a buffer, for tests: {@code value} gives a parameter's value; must not overflow. */
    default long evaluate(Function<String, Long> value) {
        return switch (this) {
            case Constant constant -> constant.value();
            case Reference used -> value.apply(used.name());
            case Operation operation -> {
                List<Long> operands = operation.operands().stream().map(o -> o.evaluate(value)).toList();
                yield switch (operation.name()) {
                    case "add" -> Math.addExact(operands.get(0), operands.get(1));
                    case "multiply" -> Math.multiplyExact(operands.get(0), operands.get(1));
                    case "box" -> operands.get(1) == 0 || operands.get(2) == 0 ? 0
                        : Math.addExact(Math.multiplyExact(operands.get(0), operands.get(1) - 1), operands.get(2));
                    case "compute" -> {
                        if (operands.get(0) >= 16) { // no such type is smaller
                            throw new IllegalStateException(operation.name());
                        }
                        yield 0L;
                    }
                    default -> throw new IllegalStateException(operation.name());
                };
            }
        };
    }

    /** A recursive descent parser. */
    final class Parser {
        private final String owner;
        private final String text;
        private int at;

        private Parser(String owner, String text) {
            this.owner = owner;
            this.text = text.replace(" ", "");
        }

        private SizeExpression parse() {
            SizeExpression whole = sum();
            if (at != text.length()) {
                throw bad();
            }
            return whole;
        }

        private SizeExpression sum() {
            SizeExpression left = product();
            while (take('+')) {
                left = new Operation("add", List.of(left, product()));
            }
            return left;
        }

        private SizeExpression product() {
            SizeExpression left = atom();
            while (take('*')) {
                left = new Operation("multiply", List.of(left, atom()));
            }
            return left;
        }

        private SizeExpression atom() {
            if (take('(')) {
                SizeExpression inner = sum();
                expect(')');
                return inner;
            }
            int start = at;
            while (at < text.length()
                && (Character.isLetterOrDigit(text.charAt(at)) || "_.".indexOf(text.charAt(at)) >= 0)) {
                at++;
            }
            String word = text.substring(start, at);
            if (word.isEmpty()) {
                throw bad();
            }
            if (Character.isDigit(word.charAt(0))) {
                return new Constant(Long.parseLong(word));
            }
            Integer operands = OPERATIONS.get(word);
            return operands != null && take('(') ? operation(word, operands) : new Reference(word);
        }

        private SizeExpression operation(String name, int count) {
            List<SizeExpression> operands = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                operands.add(sum());
                expect(i == count - 1 ? ')' : ',');
            }
            return new Operation(name, operands);
        }

        private boolean take(char c) {
            boolean there = at < text.length() && text.charAt(at) == c;
            at += there ? 1 : 0;
            return there;
        }

        private void expect(char c) {
            if (!take(c)) {
                throw bad();
            }
        }

        private DescriptionException bad() {
            return new DescriptionException(owner + ": a size is made of names, numbers, +, * and () and of"
                + " box(pitch, rows, width), pick(number, ifZero, otherwise), matrix(ld, rows, columns, bytes),"
                + " vector(n, increment, bytes), triangle(n), element(type), compute(computation, type),"
                + " sum(array, elementBytes), min(a, b), job(letter, ifA, ifS): size=" + text + ", at=" + at);
        }
    }
}
