package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;
import org.junit.jupiter.api.Test;

class NeverCalledTest {
    private static Trace recorded(String name) throws IOException {
        try (BufferedReader reader = new BufferedReader(new InputStreamReader(
            new GZIPInputStream(NeverCalledTest.class.getResourceAsStream(name)),
            StandardCharsets.ISO_8859_1))) {
            return Trace.of(reader.lines());
        }
    }

    @Test
    void shouldFindEachFunctionInEachRecordedRunOrInTheList() throws IOException {
        for (String name : Errors.RECORDED) {
            Trace trace = recorded(name);
            assertTrue(trace.functions().size() > 700);
            assertTrue(trace.hasCases());
            assertEquals(Errors.RECORDED_CALLS, trace.withoutCases().calls().size());
            assertEquals(List.of(), NeverCalled.ofResource().missing(trace));
        }
    }

    @Test
    void shouldNameFunctionsThatAreNeitherCalledNorListed() {
        Trace trace = Trace.of(Stream.of("function cuInit", "function cuMemAlloc_v2", "function cudaFree",
            "0 cuInit(0) = 0 sync=0"));
        assertEquals(List.of("cuMemAlloc_v2"),
            NeverCalled.of(Stream.of("# a comment", "cuda*|a reason")).missing(trace));
    }

    @Test
    void shouldRefuseAFunctionWithoutAReason() {
        assertThrows(CheckException.class, () -> NeverCalled.of(Stream.of("cuInit|")));
        assertThrows(CheckException.class, () -> NeverCalled.of(Stream.of("cuInit")));
    }
}
