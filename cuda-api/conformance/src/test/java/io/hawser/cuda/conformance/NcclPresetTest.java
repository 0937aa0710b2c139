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
 * Compares the description of NCCL with JavaCPP's preset, which was made from nccl.h of NCCL 2.29.3: names, numbers of
 * parameters, their widths, and constants. Its class is read as a file, because loading it loads NVIDIA's libraries.
 */
class NcclPresetTest {
    private static final String PRESET = "/org/bytedeco/cuda/global/nccl.class";
    /** Begins of the names of functions of NCCL 2.30. */
    private static final List<String> NOT_IN_PRESET = List.of("ncclParam", "ncclCommMemStats", "ncclCommResume",
        "ncclCommSuspend");
    /** A result of NCCL 2.31. */
    private static final String NEW_RESULT = "ncclTimeout";

    private final Map<String, List<List<Integer>>> functions = new HashMap<>();
    private final Map<String, Integer> constants = new HashMap<>();
    private Library library;

    @BeforeEach
    void readPreset() throws IOException {
        library = new DescriptionReader(Source.classPath()).read().library("nccl");
        ClassModel preset;
        try (InputStream in = NcclPresetTest.class.getResourceAsStream(PRESET)) {
            preset = ClassFile.of().parse(in.readAllBytes());
        }
        preset.methods().stream().filter(m -> m.flags().has(AccessFlag.NATIVE) && m.flags().has(AccessFlag.PUBLIC))
            .forEach(m -> functions.computeIfAbsent(m.methodName().stringValue(), key -> new ArrayList<>())
                .add(m.methodTypeSymbol().parameterList().stream().map(NcclPresetTest::width).toList()));
        preset.fields().forEach(field -> field.findAttribute(Attributes.constantValue()).ifPresent(value -> {
            if (value.constant().constantValue() instanceof Integer number) {
                constants.put(field.fieldName().stringValue(), number);
            }
        }));
        assertFalse(functions.isEmpty() || constants.isEmpty(), "the preset must have functions and constants");
    }

    @Test
    void shouldNameEveryFunctionTwice() {
        Set<String> named = library.functions().stream().filter(ApiFunction::exported).map(ApiFunction::symbol)
            .collect(Collectors.toCollection(HashSet::new));
        library.unsupported().keySet().stream().filter(name -> !library.headerless().contains(name))
            .filter(name -> NOT_IN_PRESET.stream().noneMatch(name::startsWith)).forEach(named::add);
        Set<String> both = new HashSet<>(named);
        named.forEach(name -> both.add("p" + name)); // the guest's library has them as second names
        functions.remove("ncclMaxRedOp"); // a constant
        assertEquals(functions.keySet(), both);
    }

    @Test
    void shouldAgreeInTheWidthOfEveryParameter() {
        for (ApiFunction function : library.functions()) {
            if (function.exported()) {
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
                if (value.getKey().startsWith("nccl") && !value.getKey().equals(NEW_RESULT)) {
                    assertEquals(constants.get(value.getKey()), value.getValue().intValue(), value.getKey());
                    compared++;
                }
            }
        }
        assertEquals(8 + 5 + 12 + 2, compared, "results, reductions, types and residences");
    }

    private int width(Param param) {
        // JavaCPP passes a structure by its address.
        boolean isPointer = param.type().endsWith("*") || param.type().equals("ncclUniqueId");
        return isPointer ? 8 : library.types().find(param.type()).size();
    }

    private static int width(ClassDesc type) {
        return switch (type.descriptorString()) {
            case "I", "F" -> 4;
            default -> 8; // a long or a pointer
        };
    }
}
