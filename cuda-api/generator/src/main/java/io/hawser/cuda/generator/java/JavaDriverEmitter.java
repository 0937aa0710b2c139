package io.hawser.cuda.generator.java;

import io.hawser.cuda.generator.emit.Code;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.Family;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Param;
import io.hawser.cuda.generator.model.Param.Shape;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/** Writes the interface of the library's functions that backends implement. */
final class JavaDriverEmitter {
    private final Library library;

    JavaDriverEmitter(Library library) {
        this.library = library;
    }

    Code driver() {
        Code out = new Code();
        out.line("package %s;", library.javaPackage()).line();
        out.line("import java.lang.foreign.MemorySegment;").line();
        out.block("""
            /**
             * The library's functions of a backend, with C's parameters. Handles and device pointers are native
             * ones, as long. Numbers have C's size, signed or not. Texts are String. Structures by value and other
             * pointers are a MemorySegment of private native memory, aligned to 8. It is null where the caller passed
             * a legal NULL.
             * Functions for several types of numbers share a method, which has the form and 64-bit integers.
             * Outputs are read only when the result is 0. Decoder's thread only; a method must neither block nor
             * throw.
             */""");
        out.open("public interface %sDriver", library.javaName());
        library.methods().forEach((name, functions) -> {
            out.line("/** C: {@code %s}%s. */", prototype(functions.getFirst()), others(functions));
            out.open("default int %s(%s)", name, familyParameters(library, functions));
            out.line("return %s;", notSupported()).close().line();
        });
        return out.close();
    }

    private String notSupported() {
        return library.javaResult() + "." + library.errors().notSupported();
    }

    static String prototype(ApiFunction function) {
        return function.symbol() + "(" + function.params().stream()
            .map(p -> (p.type() + " " + p.name()).replace("* ", "*")).collect(Collectors.joining(", ")) + ")";
    }

    private static String others(List<ApiFunction> functions) {
        return functions.size() == 1 ? "" : " and its " + (functions.size() - 1) + " other forms";
    }

    /** The function whose parameters the method has: one with 64-bit integers and double, if there is any. */
    static ApiFunction widest(List<ApiFunction> functions) {
        ApiFunction widest = functions.getFirst();
        for (ApiFunction function : functions) {
            widest = numberBytes(function) > numberBytes(widest) ? function : widest;
        }
        return widest;
    }

    private static int numberBytes(ApiFunction function) {
        return function.params().stream().filter(p -> p.shape() == Shape.NUMBER).mapToInt(p -> p.value().size()).sum();
    }

    /** Parameters of the method that serves these functions. */
    static String familyParameters(Library library, List<ApiFunction> functions) {
        List<String> texts = new ArrayList<>();
        Family family = functions.getFirst().family();
        if (family != null && family.form() != null) {
            texts.add(library.javaName() + "Form form");
        }
        if (family != null && family.hasWide()) {
            texts.add("boolean isWide");
        }
        widest(functions).params().forEach(p -> texts.add(driverType(p) + " " + p.name()));
        return String.join(", ", texts);
    }

    /** What the method of a function's family receives before C's arguments. */
    static List<String> familyArguments(Library library, ApiFunction function) {
        List<String> texts = new ArrayList<>();
        Family family = function.family();
        if (family != null && family.form() != null) {
            texts.add(library.javaName() + "Form." + family.constant());
        }
        if (family != null && family.hasWide()) {
            texts.add(Boolean.toString(family.isWide()));
        }
        return texts;
    }

    /** The enumeration of forms; null for a library without forms. */
    Code forms() {
        if (library.forms().isEmpty()) {
            return null;
        }
        Code out = new Code();
        out.line("package %s;", library.javaPackage()).line();
        out.line("/** Letters of the number types in the names of functions. */");
        out.open("public enum %sForm", library.javaName());
        library.forms().forEach(f -> out.line("/** {@code %s}. */", f.form()).line("%s,", f.constant()));
        return out.close();
    }

    static String driverParameters(ApiFunction function) {
        return function.params().stream().map(p -> driverType(p) + " " + p.name()).collect(Collectors.joining(", "));
    }

    static String driverType(Param param) {
        return param.shape() == Shape.NEW || !param.inRequest() ? "MemorySegment" : JavaTypes.decoded(param);
    }
}
