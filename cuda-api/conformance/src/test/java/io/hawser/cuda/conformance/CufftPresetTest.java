package io.hawser.cuda.conformance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.CType.Enumeration;
import io.hawser.cuda.generator.model.DescriptionReader;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Source;
import java.io.IOException;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Compares the description of cuFFT with JavaCPP's preset, which was made from NVIDIA's cufft.h: names, numbers of
 * parameters, their widths, and constants. The preset lacks cufftXt.h.
 */
class CufftPresetTest {
    /** Functions of cufftXt.h. */
    private static final Set<String> NOT_IN_PRESET = Set.of("cufftXtMakePlanMany", "cufftXtGetSizeMany", "cufftXtExec");

    private Preset preset;
    private Library library;

    @BeforeEach
    void readPreset() throws IOException {
        library = new DescriptionReader(Source.classPath()).read().library("cufft");
        preset = Preset.read("cufft");
    }

    @Test
    void shouldNameEveryFunction() {
        Set<String> described = library.functions().stream().filter(ApiFunction::exported).map(ApiFunction::symbol)
            .collect(Collectors.toSet());
        Set<String> expected = new HashSet<>(preset.functions().keySet());
        expected.addAll(NOT_IN_PRESET);
        assertEquals(expected, described);
        library.unsupported().keySet().forEach(name -> assertTrue(library.headerless().contains(name), name));
    }

    @Test
    void shouldAgreeInTheWidthOfEveryParameter() {
        for (ApiFunction function : library.functions()) {
            if (function.exported() && !NOT_IN_PRESET.contains(function.symbol())) {
                List<Integer> widths = function.params().stream().map(param -> Preset.width(library, param)).toList();
                assertTrue(preset.hasForm(function.symbol(), widths),
                    () -> function.symbol() + " " + widths + " " + preset.functions().get(function.symbol()));
            }
        }
    }

    @Test
    void shouldAgreeInEveryConstant() {
        int compared = 0;
        for (Enumeration type : library.types().all(Enumeration.class)) {
            for (Map.Entry<String, Long> value : type.values().entrySet()) {
                if (value.getKey().startsWith("CUFFT_") || value.getKey().startsWith("NVFFT_")) {
                    assertEquals(preset.constants().get(value.getKey()), value.getValue().intValue(), value.getKey());
                    compared++;
                }
            }
        }
        assertEquals(18 + 6 + 2 + 2, compared, "results, types, properties and directions");
    }
}
