package io.hawser.cuda.generator.java;

import io.hawser.cuda.generator.emit.Code;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.CType;
import io.hawser.cuda.generator.model.CType.Field;
import io.hawser.cuda.generator.model.CType.Structure;
import io.hawser.cuda.generator.model.ForeignClass;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Param;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Collectors;

/** Writes classes that call the machine's own library. */
final class JavaForeignEmitter {
    private final Library library;

    JavaForeignEmitter(Library library) {
        this.library = library;
    }

    /** The implementation of the backend interface; null for a library without backend methods. */
    Code driver() {
        List<ApiFunction> functions = library.travelling().stream().filter(ApiFunction::backend).toList();
        if (functions.isEmpty()) {
            return null;
        }
        Code out = new Code();
        open(out, functions, """
            /**
             * The functions of the backend interface, called in the machine's own library. A function that the
             * library lacks returns "not supported". Any thread, as the library allows.
             */""", "class " + library.javaName() + "Foreign implements " + library.javaName() + "Driver", "");
        if (library.foreignObjects()) {
            out.line("private final NativeLibrary library;").line();
            out.line("/** Calls a loaded library; finds a function at its first call. */");
            out.open("public %sForeign(NativeLibrary library)", library.javaName());
            out.line("this.library = library;").close().line();
        }
        out.open("private static MemorySegment orNull(MemorySegment segment)");
        out.line("return segment == null ? MemorySegment.NULL : segment;").close().line();
        if (functions.stream().flatMap(f -> f.params().stream()).anyMatch(JavaForeignEmitter::isText)) {
            out.open("private static MemorySegment orNull(String text, Arena arena)");
            out.line("return text == null ? MemorySegment.NULL : arena.allocateFrom(text);").close().line();
        }
        for (ApiFunction function : functions) {
            boolean texts = function.params().stream().anyMatch(JavaForeignEmitter::isText);
            if (function.family() == null) {
                out.line("@Override");
            }
            out.open("%s int %s(%s)", function.family() == null ? "public" : "private", function.symbol(),
                JavaDriverEmitter.driverParameters(function));
            if (library.foreignObjects()) {
                out.open("if (%s == null)", constant(function));
                out.line("%s = %s;", constant(function), find("library, ", function)).close();
            }
            call(out, function, texts ? "try (Arena arena = Arena.ofConfined())" : "try",
                JavaForeignEmitter::driverArgument);
        }
        library.methods().forEach((name, members) -> {
            if (members.getFirst().family() != null) {
                family(out, name, members);
            }
        });
        return out.close();
    }

    /** The method of a family: selects the function by form and width. */
    private void family(Code out, String name, List<ApiFunction> members) {
        out.line("@Override");
        out.open("public int %s(%s)", name, JavaDriverEmitter.familyParameters(library, members));
        boolean hasForms = members.getFirst().family().form() != null;
        if (!hasForms) {
            out.line("return %s;", select(members, members)).close().line();
            return;
        }
        out.open("return switch (form)");
        members.stream().collect(Collectors.groupingBy(f -> f.family().constant(), LinkedHashMap::new,
            Collectors.toList())).forEach(
                (form, both) -> out.line("case %s -> %s;", form,
                    select(both, members)));
        if (members.stream().map(f -> f.family().constant()).distinct().count() < library.forms().size()) {
            out.line("default -> %s.%s;", library.result(), library.errors().notSupported());
        }
        out.close("};").close().line();
    }

    /** The call of one function, or the choice between the two widths. */
    private static String select(List<ApiFunction> both, List<ApiFunction> members) {
        ApiFunction wide = JavaDriverEmitter.widest(members);
        return both.stream().sorted(Comparator.comparing(f -> !f.family().isWide()))
            .map(f -> f.symbol() + "(" + f.params().stream().map(p -> narrowed(p, wide)).collect(Collectors.joining(
                ", ")) + ")")
            .collect(Collectors.joining(" : ", both.size() > 1 ? "isWide ? " : "", ""));
    }

    /** An argument of the family's method as a function of it takes it. */
    private static String narrowed(Param param, ApiFunction wide) {
        String type = JavaDriverEmitter.driverType(param);
        boolean isSame = wide.params().stream().anyMatch(p -> p.name().equals(param.name())
            && JavaDriverEmitter.driverType(p).equals(type));
        return isSame ? param.name() : "(" + type + ") " + param.name();
    }

    /** A class of methods with C's parameters: static ones, unless the class has an object for each loaded library. */
    Code functions(ForeignClass type) {
        Code out = new Code();
        open(out, type.functions(), """
            /**
             * Functions of the machine's own library, with C's names and parameters: handles and device pointers
             * are long, a structure by value and any pointer is a MemorySegment, for example MemorySegment.NULL. A
             * function that the library lacks returns "not supported". The class finds its functions when it is
             * first used. Any thread, as the library allows.
             */""", "final class " + type.name(), "final ");
        if (library.foreignObjects()) {
            out.line("/** Finds the functions in a loaded library. */");
            out.open("public %s(NativeLibrary library)", type.name());
            type.functions().forEach(f -> out.line("%s = %s;", constant(f), find("library, ", f)));
            out.close().line();
        } else {
            out.line("private %s() { }", type.name()).line();
        }
        for (ApiFunction function : type.functions()) {
            out.line("/** C: {@code %s}. */", JavaDriverEmitter.prototype(function));
            out.open("public %sint %s(%s)", library.foreignObjects() ? "" : "static ", function.symbol(),
                function.params().stream()
                    .map(p -> javaType(ctype(p)) + " " + p.name()).collect(Collectors.joining(", ")));
            call(out, function, "try", Param::name);
        }
        return out.close();
    }

    private void open(Code out, List<ApiFunction> functions, String doc, String declaration, String modifier) {
        out.line("package %s;", library.javaPackage()).line();
        out.line("import io.hawser.cuda.backend.NativeLibrary;").line("import java.lang.foreign.*;")
            .line("import java.lang.invoke.MethodHandle;").line();
        out.block(doc).open("public " + declaration);
        if (library.foreignObjects()) {
            functions.forEach(f -> out.line("private %sMethodHandle %s;", modifier, constant(f)));
            out.line();
            open(out, "NativeLibrary library, ", "library");
            return;
        }
        out.line("private static final NativeLibrary LIBRARY = NativeLibrary.open(\"%s\");", library.soname()).line();
        functions.forEach(f -> out.line("private static final MethodHandle %s = %s;", constant(f), find("", f)));
        out.line();
        open(out, "", "LIBRARY");
    }

    private void open(Code out, String parameter, String object) {
        out.open("private static MethodHandle find(%sString symbol, MemoryLayout... parameters)", parameter);
        out.line("return %s.find(symbol, %s.%s, parameters);", object, library.javaResult(),
            library.errors().notSupported());
        out.close().line();
    }

    private String find(String argument, ApiFunction function) {
        return "find(" + argument + "\"" + function.symbol() + "\"" + function.params().stream()
            .map(p -> ", " + layout(ctype(p))).collect(Collectors.joining()) + ")";
    }

    private static void call(Code out, ApiFunction function, String block, Function<Param, String> argument) {
        out.open(block);
        out.line("return (int) %s.invokeExact(%s);", constant(function), function.params().stream().map(argument)
            .collect(Collectors.joining(", ")));
        out.close("} catch (Throwable thrown) {");
        out.line("    throw NativeLibrary.unexpected(thrown);");
        out.line("}");
        out.close().line();
    }

    private static boolean isText(Param param) {
        return JavaDriverEmitter.driverType(param).equals("String");
    }

    private static String driverArgument(Param param) {
        return switch (JavaDriverEmitter.driverType(param)) {
            case "MemorySegment" -> "orNull(" + param.name() + ")";
            case "String" -> "orNull(" + param.name() + ", arena)";
            default -> param.name();
        };
    }

    /** C's type of a parameter; a pointer where the content of a descriptor travels. */
    private CType ctype(Param param) {
        return param.shape() == Param.Shape.NUMBER ? param.value()
            : library.types().find(param.conversion() == null && param.scalar() == null ? param.type() : "void *");
    }

    private static String javaType(CType type) {
        return switch (type) {
            case CType.Handle ignored -> "long";
            case CType.Pointer ignored -> "MemorySegment";
            case Structure ignored -> "MemorySegment";
            default -> JavaTypes.number(type);
        };
    }

    private static String layout(CType type) {
        return switch (type) {
            case CType.Handle ignored -> "ValueLayout.JAVA_LONG";
            case CType.Pointer ignored -> "ValueLayout.ADDRESS";
            case Structure structure -> layout(structure);
            default -> JavaTypes.layout(type);
        };
    }

    private static String layout(Structure structure) {
        List<String> members = new ArrayList<>();
        int end = 0;
        for (Field field : structure.fields()) {
            pad(members, field.offset() - end);
            String element = layout(field.type());
            members.add(field.elements() == 0 ? element
                : "MemoryLayout.sequenceLayout(" + field.elements() + ", " + element + ")");
            end = Math.max(end, field.offset() + field.size());
        }
        if (end < structure.size()) {
            pad(members, structure.union() ? structure.size() : structure.size() - end);
        }
        return (structure.union() ? "MemoryLayout.unionLayout(" : "MemoryLayout.structLayout(")
            + String.join(", ", members) + ")";
    }

    private static void pad(List<String> members, int bytes) {
        if (bytes > 0) {
            members.add("MemoryLayout.paddingLayout(" + bytes + ")");
        }
    }

    private static String constant(ApiFunction function) {
        return JavaTypes.upper(function.symbol());
    }
}
