package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Each check of its own explains itself, and starts nothing. */
class UsageTest {
    static Stream<Arguments> shouldPrintItsUsage() {
        return Stream.of(Arguments.of("--soak", main(SoakMain::main)), Arguments.of("--starts", main(StartsMain::main)),
            Arguments.of("--errors", main(ErrorsMain::main)), Arguments.of("--frameworks", main(FrameworksMain::main)),
            Arguments.of("--shares", main(SharesMain::main)), Arguments.of("--swaps", main(SwapsMain::main)),
            Arguments.of("--moves", main(MovesMain::main)));
    }

    private static Consumer<String[]> main(Consumer<String[]> main) {
        return main;
    }

    @ParameterizedTest
    @MethodSource
    void shouldPrintItsUsage(String check, Consumer<String[]> main) {
        PrintStream before = System.out;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        try {
            main.accept(new String[] {"--help"});
        } finally {
            System.setOut(before);
        }
        String text = printed.toString(StandardCharsets.UTF_8);
        assertTrue(text.startsWith("usage: hawser-check " + check), text);
    }
}
