package io.hawser.cuda.conformance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.CType.Enumeration;
import io.hawser.cuda.generator.model.DescriptionReader;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Param;
import io.hawser.cuda.generator.model.Source;
import java.io.IOException;
import java.io.InputStream;
import java.lang.classfile.Attributes;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassModel;
import java.lang.constant.ClassDesc;
import java.lang.reflect.AccessFlag;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Compares the description of cuFFT with JavaCPP's preset, which was made from NVIDIA's cufft.h: names, numbers of
 * parameters, their widths, and constants. The preset lacks cufftXt.h. Its class is read as a file, because loading it
 * loads NVIDIA's libraries.
 */
class CufftPresetTest {
    private static final String PRESET = "/org/bytedeco/cuda/global/cufft.class";
    /** Functions of cufftXt.h. */
    private static final Set<String> NOT_IN_PRESET = Set.of("cufftXtMakePlanMany", "cufftXtGetSizeMany", "cufftXtExec");

    private final Map<String, List<List<Integer>>> functions = new HashMap<>();
    private final Map<String, Integer> constants = new HashMap<>();
    private Library library;

    @BeforeEach
    void readPreset() throws IOException {
        library = new DescriptionReader(Source.classPath()).read().library("cufft");
        ClassModel preset;
        try (InputStream in = CufftPresetTest.class.getResourceAsStream(PRESET)) {
            preset = ClassFile.of().parse(in.readAllBytes());
        }
        preset.methods().stream().filter(m -> m.flags().has(AccessFlag.NATIVE) && m.flags().has(AccessFlag.PUBLIC))
            .forEach(m -> functions.computeIfAbsent(m.methodName().stringValue(), key -> new ArrayList<>())
                .add(m.methodTypeSymbol().parameterList().stream().map(CufftPresetTest::width).toList()));
        preset.fields().forEach(field -> field.findAttribute(Attributes.constantValue()).ifPresent(value -> {
            if (value.constant().constantValue() instanceof Integer number) {
                constants.put(field.fieldName().stringValue(), number);
            }
        }));
        assertFalse(functions.isEmpty() || constants.isEmpty(), "the preset must have functions and constants");
    }

    @Test
    void shouldNameEveryFunction() {
        Set<String> described = library.functions().stream().filter(ApiFunction::exported).map(ApiFunction::symbol)
            .collect(Collectors.toSet());
        Set<String> expected = new HashSet<>(functions.keySet());
        expected.addAll(NOT_IN_PRESET);
        assertEquals(expected, described);
        library.unsupported().keySet().forEach(name -> assertTrue(library.headerless().contains(name), name));
    }

    @Test
    void shouldAgreeInTheWidthOfEveryParameter() {
        for (ApiFunction function : library.functions()) {
            if (function.exported() && !NOT_IN_PRESET.contains(function.symbol())) {
                List<Integer> widths = function.params().stream().map(this::width).toList();
                assertTrue(functions.get(function.symbol()).contains(widths),
                    () -> function.symbol() + " " + widths + " " + functions.get(function.symbol()));
            }
        }
    }

    @Test
    void shouldAgreeInEveryConstant() {
        int compared = 0;
        for (Enumeration type : library.types().all(Enumeration.class)) {
            for (Map.Entry<String, Long> value : type.values().entrySet()) {
                if (value.getKey().startsWith("CUFFT_") || value.getKey().startsWith("NVFFT_")) {
                    assertEquals(constants.get(value.getKey()), value.getValue().intValue(), value.getKey());
                    compared++;
                }
            }
        }
        assertEquals(18 + 6 + 2 + 2, compared, "results, types, properties and directions");
    }

    private int width(Param param) {
        return param.type().endsWith("*") ? 8 : library.types().find(param.type()).size();
    }

    private static int width(ClassDesc type) {
        return switch (type.descriptorString()) {
            case "I", "F" -> 4;
            default -> 8; // a long or a pointer
        };
    }
}
