package io.hawser.cuda.conformance;

import static org.junit.jupiter.api.Assertions.assertFalse;

import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Param;
import java.io.IOException;
import java.io.InputStream;
import java.lang.classfile.Attributes;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassModel;
import java.lang.constant.ClassDesc;
import java.lang.reflect.AccessFlag;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A preset of JavaCPP, which was made from NVIDIA's headers. Its class is read as a file, because loading it loads
 * NVIDIA's libraries.
 *
 * @param functions the parameters of each function, of each of its forms.
 * @param constants the constants of type int.
 */
record Preset(Map<String, List<List<ClassDesc>>> functions, Map<String, Integer> constants) {
    /** Reads the preset of a library: cublas, cudnn. */
    static Preset read(String library) throws IOException {
        Map<String, List<List<ClassDesc>>> functions = new HashMap<>();
        Map<String, Integer> constants = new HashMap<>();
        ClassModel preset;
        try (InputStream in = Preset.class.getResourceAsStream("/org/bytedeco/cuda/global/" + library + ".class")) {
            preset = ClassFile.of().parse(in.readAllBytes());
        }
        preset.methods().stream().filter(m -> m.flags().has(AccessFlag.NATIVE)
            && m.flags().has(AccessFlag.PUBLIC)).forEach(m -> functions
                .computeIfAbsent(m.methodName().stringValue(), key -> new ArrayList<>())
                .add(m.methodTypeSymbol().parameterList()));
        preset.fields().forEach(field -> field.findAttribute(Attributes.constantValue()).ifPresent(value -> {
            if (value.constant().constantValue() instanceof Integer number) {
                constants.put(field.fieldName().stringValue(), number);
            }
        }));
        assertFalse(functions.isEmpty() || constants.isEmpty(), "the preset must have functions and constants");
        return new Preset(functions, constants);
    }

    /** Whether a form of a function has parameters of these widths. */
    boolean hasForm(String function, List<Integer> widths) {
        return functions.getOrDefault(function, List.of()).stream()
            .anyMatch(f -> widths.equals(f.stream().map(Preset::width).toList()));
    }

    /** Bytes of a described parameter. JavaCPP has a pointer in the place of a structure by value. */
    static int width(Library library, Param param) {
        return param.type().endsWith("*") || param.isStructureByValue() ? Long.BYTES
            : library.types().find(param.type()).size();
    }

    private static int width(ClassDesc type) {
        return switch (type.descriptorString()) {
            case "I", "F" -> Integer.BYTES;
            case "S" -> Short.BYTES;
            case "B" -> Byte.BYTES;
            default -> Long.BYTES; // also a pointer
        };
    }
}
