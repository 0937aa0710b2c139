package io.hawser.cuda.generator.java;

import io.hawser.cuda.generator.emit.Code;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Param;
import java.util.List;
import java.util.stream.Collectors;

/** Writes the implementation of the backend interface that calls the machine's own library. */
final class JavaForeignEmitter {
    private final Library library;

    JavaForeignEmitter(Library library) {
        this.library = library;
    }

    Code emit() {
        Code out = new Code();
        List<ApiFunction> functions = library.travelling().stream().filter(ApiFunction::backend).toList();
        if (functions.isEmpty()) {
            return null;
        }
        out.line("package %s;", library.javaPackage()).line();
        out.line("import io.hawser.cuda.backend.NativeLibrary;").line("import java.lang.foreign.Arena;")
                .line("import java.lang.foreign.MemoryLayout;").line("import java.lang.foreign.MemorySegment;")
                .line("import java.lang.foreign.ValueLayout;")
                .line("import java.lang.invoke.MethodHandle;").line();
        out.block("""
                /**
                 * The functions of the backend interface, called in the machine's own library. A function that the
                 * library lacks returns "not supported". Any thread, as the library allows.
                 */""");
        String type = library.javaName() + "Foreign";
        out.open("public class %s implements %sDriver", type, library.javaName());
        out.line("private static final NativeLibrary LIBRARY = NativeLibrary.open(\"lib%s.so.1\");", library.name())
                .line();
        for (ApiFunction function : functions) {
            out.line("private static final MethodHandle %s = find(\"%s\"%s);", constant(function), function.symbol(),
                    function.params().stream().map(p -> ", " + layout(p)).collect(Collectors.joining()));
        }
        out.line();
        out.open("private static MethodHandle find(String symbol, MemoryLayout... parameters)");
        out.line("return LIBRARY.find(symbol, %s.%s, parameters);", library.result(),
                library.errors().notSupported());
        out.close().line();
        out.open("private static MemorySegment orNull(MemorySegment segment)");
        out.line("return segment == null ? MemorySegment.NULL : segment;").close().line();
        functions.forEach(function -> method(out, function));
        return out.close();
    }

    private static void method(Code out, ApiFunction function) {
        out.line("@Override");
        out.open("public int %s(%s)", function.symbol(), JavaDriverEmitter.driverParameters(function));
        boolean texts = function.params().stream().anyMatch(JavaForeignEmitter::isText);
        out.open(texts ? "try (Arena arena = Arena.ofConfined())" : "try");
        out.line("return (int) %s.invokeExact(%s);", constant(function), function.params().stream()
                .map(JavaForeignEmitter::argument).collect(Collectors.joining(", ")));
        out.close("} catch (Throwable e) {");
        out.line("    throw NativeLibrary.unexpected(e);");
        out.line("}");
        out.close().line();
    }

    private static boolean isText(Param param) {
        return JavaDriverEmitter.driverType(param).equals("String");
    }

    private static String argument(Param param) {
        return switch (JavaDriverEmitter.driverType(param)) {
            case "MemorySegment" -> "orNull(" + param.name() + ")";
            case "String" -> param.name() + " == null ? MemorySegment.NULL : arena.allocateFrom(" + param.name() + ")";
            default -> param.name();
        };
    }

    private static String layout(Param param) {
        return switch (JavaDriverEmitter.driverType(param)) {
            case "MemorySegment", "String" -> "ValueLayout.ADDRESS";
            case "long" -> "ValueLayout.JAVA_LONG";
            case "int" -> "ValueLayout.JAVA_INT";
            case "short" -> "ValueLayout.JAVA_SHORT";
            case "byte" -> "ValueLayout.JAVA_BYTE";
            case "float" -> "ValueLayout.JAVA_FLOAT";
            default -> "ValueLayout.JAVA_DOUBLE";
        };
    }

    private static String constant(ApiFunction function) {
        return JavaTypes.upper(function.symbol());
    }
}
