package io.hawser.cuda.generator.model;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SizeExpressionTest {
    private static final Map<String, Long> VALUES = Map.of("a", 3L, "b", 5L, "zero", 0L);

    @Test
    void shouldBindProductsBeforeSums() {
        assertEquals(3 + 5 * 4, evaluate("a + b * 4"));
        assertEquals((3 + 5) * 4, evaluate("(a + b) * 4"));
    }

    @Test
    void shouldMeasureRowsBySpanOfLastRow() {
        assertEquals(3 * 4 + 2, evaluate("box(a, b, 2)"));
        assertEquals(0, evaluate("box(a, zero, 2)"));
        assertEquals(0, evaluate("box(a, b, zero)"));
    }

    @Test
    void shouldWriteOperationsThatCannotWrap() {
        SizeExpression size = SizeExpression.parse("test", "a * b + 4");
        assertEquals("f_add(f_multiply(<a>, <b>), 4u)", size.emit(name -> "<" + name + ">", "f_", "u"));
        assertEquals(List.of("a", "b"), size.references());
        assertEquals(List.of("box.width"), SizeExpression.parse("test", "box.width * 2").references());
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "a +", "(a", "a b)", "a - b", "box(a, b)", "a * * b"})
    void shouldRefuseAnInvalidSize(String text) {
        assertThrows(DescriptionException.class, () -> SizeExpression.parse("test", text));
    }

    private static long evaluate(String text) {
        return SizeExpression.parse("test", text).evaluate(VALUES::get);
    }
}
