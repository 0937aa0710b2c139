package io.hawser.cuda.generator.java;

import io.hawser.cuda.generator.emit.Code;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Param;
import io.hawser.cuda.generator.model.Param.Shape;
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
             * ones, as long. Numbers have C's size, signed or not. Texts are String. Other pointers are a
             * MemorySegment of private native memory, aligned to 8, or null where the caller passed a legal NULL.
             * Outputs are read only when the result is 0. Decoder's thread only; a method must neither block nor
             * throw.
             */""");
        out.open("public interface %sDriver", library.javaName());
        for (ApiFunction function : library.travelling()) {
            if (function.backend()) {
                out.line("/** C: {@code %s}. */", prototype(function));
                out.open("default int %s(%s)", function.symbol(), driverParameters(function));
                out.line("return %s;", notSupported()).close().line();
            }
        }
        return out.close();
    }

    private String notSupported() {
        return library.result() + "." + library.errors().notSupported();
    }

    static String prototype(ApiFunction function) {
        return function.symbol() + "(" + function.params().stream()
            .map(p -> (p.type() + " " + p.name()).replace("* ", "*")).collect(Collectors.joining(", ")) + ")";
    }

    static String driverParameters(ApiFunction function) {
        return function.params().stream().map(p -> driverType(p) + " " + p.name()).collect(Collectors.joining(", "));
    }

    static String driverType(Param param) {
        return param.shape() == Shape.NEW || !param.inRequest() ? "MemorySegment" : JavaTypes.decoded(param);
    }
}
