package io.hawser.cuda.generator.model;

import io.hawser.cuda.generator.yaml.LibraryYaml.Errors;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * A described library.
 *
 * @param name lower case: part of C file names.
 * @param number upper half of its opcodes.
 * @param soname file of the machine's own library, as the loader finds it.
 * @param javaName prefix of class names.
 * @param javaPackage package of its classes.
 * @param uses the library whose types it uses; null for none.
 * @param versioned whether each function has the first version with it.
 * @param result type of its results.
 * @param errors results that generated guest code returns by itself.
 * @param guestHeader header of the guest's hand-written code.
 * @param types its types.
 * @param groups its functions.
 * @param unsupported exports without a description, each with the first version that has it (0: unknown).
 * @param headerless those of them that no public header has.
 * @param refused functions of the library above it that have no implementation for the same reasons.
 * @param foreignClasses classes of functions that the worker calls in the machine's own library, beside the backend
 *     interface.
 * @param foreignObjects whether such a class has an object for each loaded library.
 */
public record Library(String name, int number, String soname, String javaName, String javaPackage, Library uses,
    boolean versioned, String result, Errors errors, String guestHeader, TypeTable types, List<Group> groups,
    Map<String, Integer> unsupported, Set<String> headerless, List<String> refused,
    List<ForeignClass> foreignClasses, boolean foreignObjects) {

    /** All functions. */
    public List<ApiFunction> functions() {
        return groups.stream().flatMap(g -> g.functions().stream()).toList();
    }

    /** All functions with a record of their own. */
    public List<ApiFunction> travelling() {
        return functions().stream().filter(ApiFunction::travels).toList();
    }

    /** The functions of the backend, by the method that serves them. */
    public Map<String, List<ApiFunction>> methods() {
        return travelling().stream().filter(ApiFunction::backend)
            .collect(Collectors.groupingBy(ApiFunction::method, LinkedHashMap::new, Collectors.toList()));
    }

    /** The letters of the number types of its functions that travel. */
    public List<Family> forms() {
        Map<String, Family> forms = new LinkedHashMap<>();
        travelling().stream().map(ApiFunction::family).filter(f -> f != null && f.form() != null)
            .forEach(f -> forms.putIfAbsent(f.constant(), f));
        return List.copyOf(forms.values());
    }

    /** C's type of a function's result. */
    public String returns(ApiFunction function) {
        return function.returns() == null ? result : function.returns();
    }

    /** Java's class of the results; with its package when it belongs to the library below. */
    public String javaResult() {
        Library owner = this;
        while (owner.uses != null && owner.types.all(CType.Enumeration.class).stream()
            .noneMatch(type -> type.name().equals(result))) {
            owner = owner.uses;
        }
        return owner == this ? result : owner.javaPackage + "." + result;
    }

    /** The name in macros. */
    public String upperName() {
        return name.toUpperCase(Locale.ROOT);
    }
}
