package io.hawser.cuda.generator.model;

import java.util.List;
import java.util.function.Predicate;

/**
 * The functions of one object.
 *
 * @param name lower case: part of file names.
 * @param functions in the order of the description.
 */
public record Group(String name, List<ApiFunction> functions) {
    /** Part of class names. */
    public String javaName() {
        return Character.toUpperCase(name.charAt(0)) + name.substring(1);
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
