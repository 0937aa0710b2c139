package io.hawser.cuda.generator.java;

import io.hawser.cuda.generator.emit.Code;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.Group;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Param;
import io.hawser.cuda.generator.model.Param.Shape;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Writes the interfaces that hand-written code implements: the backend, and the calls that are manual in the worker.
 */
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
                out.line("/** C: {@code %s(%s)}. */", function.symbol(), function.params().stream()
                        .map(p -> (p.type() + " " + p.name()).replace("* ", "*")).collect(Collectors.joining(", ")));
                out.open("default int %s(%s)", function.symbol(), driverParameters(function));
                out.line("return %s;", notSupported()).close().line();
            }
        }
        return out.close();
    }

    private String notSupported() {
        return library.result() + "." + library.errors().notSupported();
    }

    static String driverParameters(ApiFunction function) {
        return function.params().stream().map(p -> driverType(p) + " " + p.name()).collect(Collectors.joining(", "));
    }

    static String driverType(Param param) {
        return param.shape() == Shape.NEW || !param.inRequest() ? "MemorySegment" : JavaTypes.decoded(param);
    }

    Code manualCalls(Group group) {
        Code out = new Code();
        out.line("package %s;", library.javaPackage()).line();
        out.line("import io.hawser.cuda.CallContext;").line("import java.lang.foreign.MemorySegment;").line();
        out.block("""
                /**
                 * Calls of this group whose worker code is hand-written. Their parameters are decoded and checked:
                 * handles are native ones, with the guest's id as well if the call creates or destroys the handle.
                 * Addresses with a described size are inside the session's memory. Each method ends the call, at once
                 * or after {@code defer}; segments are valid until then.
                 */""");
        out.open("public interface %sManualCalls", group.javaName());
        for (ApiFunction function : group.only(ApiFunction::manual)) {
            out.line("/** Manual: %s. */", JavaTypes.html(function.workerReason()));
            List<String> parameters = new ArrayList<>(List.of("CallContext call"));
            parameters.addAll(manualParameters(function));
            out.line("void %s(%s);", function.symbol(), String.join(", ", parameters)).line();
        }
        return out.close();
    }

    private static List<String> manualParameters(ApiFunction function) {
        List<String> texts = new ArrayList<>();
        for (Param param : function.params()) {
            if (param.shape() == Shape.NEW) {
                texts.add("long " + param.name() + "Id");
            } else if (param.shape() == Shape.DROP) {
                texts.add("long " + param.name());
                texts.add("long " + param.name() + "Id");
            } else if (param.inRequest()) {
                texts.add(JavaTypes.decoded(param) + " " + param.name());
            }
        }
        return texts;
    }

    static List<String> manualArguments(ApiFunction function) {
        return manualParameters(function).stream().map(text -> text.substring(text.indexOf(' ') + 1)).toList();
    }
}
