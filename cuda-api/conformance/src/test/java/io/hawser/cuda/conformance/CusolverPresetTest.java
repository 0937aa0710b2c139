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
import java.util.TreeSet;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Compares the description of cuSOLVER with JavaCPP's preset: names, widths of parameters, constants. */
class CusolverPresetTest {
    /** Functions of cusolverDn.h that the preset lacks. */
    private static final String ABSENT = "cusolverDn(Sorm|Dorm|Cunm|Zunm)tr(_bufferSize)?";

    private Preset preset;
    private Library library;

    @BeforeEach
    void read() throws IOException {
        preset = Preset.read("cusolver");
        library = new DescriptionReader(Source.classPath()).read().library("cusolver");
    }

    @Test
    void shouldNameEveryFunction() {
        Set<String> missing = new TreeSet<>(preset.functions().keySet());
        missing.removeIf(name -> name.startsWith("cusolverMg")); // a library of its own
        Set<String> unknown = new TreeSet<>();
        library.functions().stream().filter(ApiFunction::exported).map(ApiFunction::symbol).forEach(name -> {
            if (missing.remove(name) == name.matches(ABSENT)) {
                unknown.add(name);
            }
        });
        library.unsupported().keySet().forEach(name -> {
            if (missing.remove(name) == library.headerless().contains(name)) {
                unknown.add(name);
            }
        });
        assertEquals(Set.of(), missing, "not described");
        assertEquals(Set.of(), unknown, "not in the preset, or wrongly without a header");
    }

    @Test
    void shouldAgreeInTheWidthOfEveryParameter() {
        for (ApiFunction function : library.functions().stream().filter(ApiFunction::exported)
            .filter(f -> !f.symbol().matches(ABSENT)).toList()) {
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
                if (value.getKey().startsWith("CUSOLVER")) {
                    assertEquals(preset.constants().get(value.getKey()), value.getValue().intValue(), value.getKey());
                    compared++;
                }
            }
        }
        assertTrue(compared > 40, "compared=" + compared);
    }
}
