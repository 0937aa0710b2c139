package io.hawser.cuda.generator.yaml;

import java.util.List;

/**
 * A library's {@code library.yaml}.
 *
 * @param library name, lower case: the folder, and part of C file names.
 * @param number upper half of its opcodes.
 * @param javaName prefix of Java class names.
 * @param javaPackage package of its Java classes; null for {@code io.hawser.cuda.generated}.
 * @param result its result type.
 * @param types files of types.
 * @param groups files of functions.
 * @param unsupported file of exports without a description; null for none.
 */
public record LibraryYaml(String library, int number, String javaName, String javaPackage, String result,
        List<String> types, List<String> groups, String unsupported) {
}
