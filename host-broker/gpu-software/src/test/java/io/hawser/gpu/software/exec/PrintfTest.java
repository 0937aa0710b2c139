package io.hawser.gpu.software.exec;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The conversions of printf; glibc's printf printed the expected texts. */
class PrintfTest {
    private static String format(String format, Object... arguments) {
        try (GlobalMemory memory = GlobalMemory.reserve(1 << 20)) {
            memory.markAllocated(memory.base(), 4096);
            MemorySegment at = memory.slice(memory.base(), 4096);
            long offset = 0;
            long string = 2048;
            for (Object argument : arguments) {
                int bytes = argument instanceof Integer ? 4 : 8;
                offset = (offset + bytes - 1) / bytes * bytes;
                switch (argument) {
                    case Integer v -> at.set(ValueLayout.JAVA_INT_UNALIGNED, offset, v);
                    case Long v -> at.set(ValueLayout.JAVA_LONG_UNALIGNED, offset, v);
                    case Double v -> at.set(ValueLayout.JAVA_DOUBLE_UNALIGNED, offset, v);
                    default -> {
                        at.setString(string, (String) argument);
                        at.set(ValueLayout.JAVA_LONG_UNALIGNED, offset, memory.base() + string);
                        string += 100;
                    }
                }
                offset += bytes;
            }
            Printf printf = new Printf(Globals.of(memory), new CtaSlot(memory), 0, memory.base());
            assertEquals(arguments.length, printf.run(format.getBytes(StandardCharsets.UTF_8)));
            return new String(printf.bytes(), StandardCharsets.UTF_8);
        }
    }

    @ParameterizedTest
    @CsvSource(delimiter = ';', ignoreLeadingAndTrailingWhitespace = false, value = {
        "%d;-5;-5", "%5d|;42;   42|", "%-5d|;42;42   |", "%05d;-42;-0042", "%+d;7;+7", "% d;7; 7", "%.3d;5;005",
        "%x;255;ff", "%#X;255;0XFF", "%o;8;10", "%#o;8;010", "%u;-1;4294967295", "%hhd;511;-1", "%hu;65537;1",
        "%c;65;A", "%5.3d|;-7; -007|", "%i%%;3;3%"})
    void shouldFormatIntegers(String format, int value, String expected) {
        assertEquals(expected, format(format, value));
    }

    @ParameterizedTest
    @CsvSource(delimiter = ';', ignoreLeadingAndTrailingWhitespace = false, value = {
        "%f;1.5;1.500000", "%.0f;2.5;2", "%.0f;3.5;4", "%#.0f;3;3.", "%10.3f|;-2.71828;    -2.718|",
        "%e;0;0.000000e+00",
        "%.2E;123456;1.23E+05", "%e;1e-310;1.000000e-310", "%g;100000;100000", "%g;1000000;1e+06", "%g;0.0001;0.0001",
        "%g;0.00001;1e-05", "%.3g;1234.5;1.23e+03", "%#g;1;1.00000", "%g;0;0", "%G;1e-10;1E-10", "%a;1;0x1p+0",
        "%a;0.1;0x1.999999999999ap-4", "%.2a;1.999;0x2.00p+0", "%A;-3;-0X1.8P+1", "%f;NaN;nan", "%F;-Infinity;-INF",
        "%08.2f;-1.5;-0001.50", "%+.1f;0.25;+0.2", "%08f|;Infinity;     inf|", "%.20f;0.1;0.10000000000000000555"})
    void shouldFormatDoubles(String format, double value, String expected) {
        assertEquals(expected, format(format, value));
    }

    @Test
    void shouldAlignMixedArguments() {
        assertEquals("1 -2 hi   x|2.5 ffffffffffffffff (null)", format("%d %lld %-5.2s%c|%.1f %llx %s", 1, -2L, "hide",
            (int) 'x', 2.5, -1L, 0L));
        assertEquals("   7|", format("%*d|", 4, 7));
        assertEquals("no end %", format("no end %"));
        assertEquals("0x1234", format("%p", 0x1234L));
        assertEquals("   (nil)", format("%8p", 0L));
    }
}
