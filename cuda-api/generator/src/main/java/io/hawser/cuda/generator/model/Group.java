package io.hawser.cuda.generator.model;

import java.util.Arrays;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/**
 * The functions of one object.
 *
 * @param name lower case: part of file names.
 * @param functions in the order of the description.
 */
public record Group(String name, List<ApiFunction> functions) {
    /** Part of class names: {@code HostMemory} for {@code host_memory}. */
    public String javaName() {
        return Arrays.stream(name.split("_")).map(word -> Character.toUpperCase(word.charAt(0)) + word.substring(1))
            .collect(Collectors.joining());
    }

    /** Functions that satisfy a condition. */
    public List<ApiFunction> only(Predicate<ApiFunction> sort) {
        return functions.stream().filter(sort).toList();
    }

    /** Functions with a record of their own. */
    public List<ApiFunction> travelling() {
        return only(ApiFunction::travels);
    }
}
