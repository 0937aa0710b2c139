package io.hawser.cuda.conformance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.CType.Enumeration;
import io.hawser.cuda.generator.model.DescriptionReader;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Param;
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
 * Compares the description of NCCL with JavaCPP's preset, which was made from nccl.h of NCCL 2.29.3: names, numbers of
 * parameters, their widths, and constants.
 */
class NcclPresetTest {
    /** Begins of the names of functions of NCCL 2.30. */
    private static final List<String> NOT_IN_PRESET = List.of("ncclParam", "ncclCommMemStats", "ncclCommResume",
        "ncclCommSuspend");
    /** A result of NCCL 2.31. */
    private static final String NEW_RESULT = "ncclTimeout";

    private Preset preset;
    private Library library;

    @BeforeEach
    void readPreset() throws IOException {
        library = new DescriptionReader(Source.classPath()).read().library("nccl");
        preset = Preset.read("nccl");
    }

    @Test
    void shouldNameEveryFunctionTwice() {
        Set<String> named = library.functions().stream().filter(ApiFunction::exported).map(ApiFunction::symbol)
            .collect(Collectors.toCollection(HashSet::new));
        library.unsupported().keySet().stream().filter(name -> !library.headerless().contains(name))
            .filter(name -> NOT_IN_PRESET.stream().noneMatch(name::startsWith)).forEach(named::add);
        Set<String> both = new HashSet<>(named);
        named.forEach(name -> both.add("p" + name)); // the guest's library has them as second names
        Set<String> functions = new HashSet<>(preset.functions().keySet());
        functions.remove("ncclMaxRedOp"); // a constant
        assertEquals(functions, both);
    }

    @Test
    void shouldAgreeInTheWidthOfEveryParameter() {
        for (ApiFunction function : library.functions()) {
            if (function.exported()) {
                List<Integer> widths = function.params().stream().map(this::width).toList();
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
                if (value.getKey().startsWith("nccl") && !value.getKey().equals(NEW_RESULT)) {
                    assertEquals(preset.constants().get(value.getKey()), value.getValue().intValue(), value.getKey());
                    compared++;
                }
            }
        }
        assertEquals(8 + 5 + 12 + 2, compared, "results, reductions, types and residences");
    }

    private int width(Param param) {
        // JavaCPP passes a structure by its address.
        return param.type().equals("ncclUniqueId") ? Long.BYTES : Preset.width(library, param);
    }
}
