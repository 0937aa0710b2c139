package io.hawser.cuda.conformance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.CType.Enumeration;
import io.hawser.cuda.generator.model.DescriptionReader;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Source;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Compares the description of cuRAND with JavaCPP's preset: names, widths of parameters, constants. */
class CurandPresetTest {
    private Preset preset;
    private Library library;

    @BeforeEach
    void read() throws IOException {
        preset = Preset.read("curand");
        library = new DescriptionReader(Source.classPath()).read().library("curand");
    }

    private List<ApiFunction> exported() {
        return library.functions().stream().filter(ApiFunction::exported).toList();
    }

    @Test
    void shouldNameEveryFunction() {
        Set<String> host = preset.functions().keySet().stream().filter(name -> name.startsWith("curand"))
            .collect(Collectors.toSet());
        assertEquals(host, exported().stream().map(ApiFunction::symbol).collect(Collectors.toSet()));
    }

    @Test
    void shouldAgreeInTheWidthOfEveryParameter() {
        for (ApiFunction function : exported()) {
            List<Integer> widths = function.params().stream().map(p -> Preset.width(library, p)).toList();
            assertTrue(preset.hasForm(function.symbol(), widths), () -> function.symbol() + " " + widths + " "
                + preset.functions().get(function.symbol()));
        }
    }

    @Test
    void shouldAgreeInEveryConstant() {
        int compared = 0;
        for (Enumeration type : library.types().all(Enumeration.class)) {
            for (Map.Entry<String, Long> value : type.values().entrySet()) {
                if (value.getKey().startsWith("CURAND_")) {
                    assertEquals(preset.constants().get(value.getKey()), value.getValue().intValue(), value.getKey());
                    compared++;
                }
            }
        }
        assertEquals(13 + 12 + 6 + 4 + 14, compared, "results, types, orderings, sets and methods");
    }
}
