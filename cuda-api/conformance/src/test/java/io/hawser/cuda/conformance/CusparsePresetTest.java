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
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Compares the description of cuSPARSE with JavaCPP's preset: names, widths of parameters, constants. */
class CusparsePresetTest {
    private static final Pattern GENERIC = Pattern.compile("Sp(Vec|Mat|VV|MV|MM|SV|SM|GEMM)|Dn(Vec|Mat)|SDDMM|Axpby"
        + "|Gather|Scatter|Rot|SparseToDense|DenseToSparse|(Csr|Csc|Coo|Bsr|Ell)(Get|Set|$)|SlicedEll|BlockedEll");

    private Preset preset;
    private Library library;

    @BeforeEach
    void read() throws IOException {
        preset = Preset.read("cusparse");
        library = new DescriptionReader(Source.classPath()).read().library("cusparse");
    }

    @Test
    void shouldNameEveryFunction() {
        Set<String> missing = new TreeSet<>(preset.functions().keySet());
        Set<String> unknown = new TreeSet<>();
        library.functions().stream().filter(ApiFunction::exported).map(ApiFunction::symbol).forEach(name -> {
            if (!missing.remove(name) && !isGeneric(name)) {
                unknown.add(name);
            }
        });
        library.unsupported().keySet().forEach(name -> {
            if (!isGeneric(name) && missing.remove(name) == library.headerless().contains(name)) {
                unknown.add(name);
            }
        });
        assertEquals(Set.of(), missing, "not described");
        assertEquals(Set.of(), unknown, "not in the preset, or wrongly without a header");
    }

    /** The preset lacks most of the generic functions. */
    private boolean isGeneric(String name) {
        return !preset.functions().containsKey(name) && GENERIC.matcher(name).find();
    }

    @Test
    void shouldAgreeInTheWidthOfEveryParameter() {
        for (ApiFunction function : library.functions().stream().filter(ApiFunction::exported)
            .filter(f -> !isGeneric(f.symbol())).toList()) {
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
                if (value.getKey().startsWith("CUSPARSE_")) {
                    assertEquals(preset.constants().get(value.getKey()), value.getValue().intValue(), value.getKey());
                    compared++;
                }
            }
        }
        assertTrue(compared > 60, "compared=" + compared);
    }
}
