package io.hawser.cuda.generator.model;

import java.util.List;

/**
 * A class of functions that the worker calls in the machine's own library with C's parameters.
 *
 * @param name of the class, without its package.
 * @param functions in the order of the list.
 */
public record ForeignClass(String name, List<ApiFunction> functions) {
}
