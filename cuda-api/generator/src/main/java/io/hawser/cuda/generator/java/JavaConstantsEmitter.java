package io.hawser.cuda.generator.java;

import io.hawser.cuda.generator.emit.Code;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.CType.Enumeration;
import io.hawser.cuda.generator.model.CType.Field;
import io.hawser.cuda.generator.model.CType.Structure;
import io.hawser.cuda.generator.model.Description;
import io.hawser.cuda.generator.model.HandleKind;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Param.Shape;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Writes classes of constants: opcodes, enumerations, structures' offsets, handle kinds, the description's hash. */
final class JavaConstantsEmitter {
    private JavaConstantsEmitter() {
    }

    static Code handleKinds(Description description) {
        Code out = new Code();
        out.line("package io.hawser.cuda.generated;").line();
        out.line("/** Kinds of handles; a handle on the wire is {@code number << 40 | id}. */");
        out.open("public enum HandleKind");
        List<HandleKind> kinds = description.kinds();
        for (HandleKind kind : kinds) {
            out.line("/** %s. */", JavaTypes.html(kind.doc()));
            out.line("%s(%d, %d)%s", kind.name(), kind.number(), kind.special(), kind == kinds.getLast() ? ";" : ",");
        }
        out.block("""

            private final int number;
            private final int special;

            HandleKind(int number, int special) {
                this.number = number;
                this.special = special;
            }

            /** Number on the wire. */
            public int number() {
                return number;
            }

            /** Ids from 0 to this are the library's own constants; 0 for none. */
            public int special() {
                return special;
            }""");
        return out.close();
    }

    static Code hash(Description description) {
        Code out = new Code();
        out.line("package io.hawser.cuda.generated;").line();
        out.line("/** The generator's input. */");
        out.open("public final class Description");
        out.line("/** Both ends compare it at the handshake: it changes with the bytes of any record. */");
        // Not a compile-time constant: javac would copy its value into classes that an incremental build does not
        // recompile.
        out.line("public static final long HASH = Long.parseUnsignedLong(\"%016x\", 16);", description.hash()).line();
        out.open("private Description()").close();
        return out.close();
    }

    static Code opcodes(Library library) {
        Code out = new Code();
        out.line("package %s;", library.javaPackage()).line();
        out.line("/** Opcodes of the library %s: {@code number << 16 | opcode}. */", library.name());
        out.open("public final class %sOpcodes", library.javaName());
        for (ApiFunction function : library.travelling()) {
            out.line("/** Opcode of %s. */", function.symbol());
            out.line("public static final int %s = 0x%08x;", function.symbol(), function.opcode()).line();
        }
        out.open("private %sOpcodes()", library.javaName()).close().line();
        out.line("/** The function's name, for logs; {@code unknown 0x...} for an opcode outside this library. */");
        out.open("public static String name(int opcode)").open("return switch (opcode)");
        library.travelling().forEach(f -> out.line("case %s -> \"%s\";", f.symbol(), f.symbol()));
        out.line("default -> \"unknown 0x\" + Integer.toHexString(opcode);").close("};").close().line();
        predicate(out, "isCredited", "Whether a request uses up credit equal to its length.",
            library.travelling().stream().filter(ApiFunction::credited).toList());
        predicate(out, "mayWaitForDevice", "Whether a request is deferred while a host function waits for the guest.",
            library.travelling().stream().filter(f -> f.gate() == ApiFunction.Gate.WAITS).toList());
        predicate(out, "endsHostFunction", "Whether a request lets a host function end; it is never deferred.",
            library.travelling().stream().filter(f -> f.gate() == ApiFunction.Gate.ANSWERS).toList());
        predicate(out, "issuesWork", "Whether a request puts work into a stream.",
            library.travelling().stream().filter(ApiFunction::issuesWork).toList());
        predicate(out, "opensGate", "Whether a stream may wait for the guest because of a request.",
            library.travelling().stream().filter(f -> f.gate() == ApiFunction.Gate.OPENS).toList());
        moves(out, library);
        offset(out, library, "streamOffset", "CUstream");
        offset(out, library, "eventOffset", "CUevent");
        predicate(out, "isSynchronous", "Whether the guest always waits for a reply.",
            library.travelling().stream().filter(f -> f.reply() == ApiFunction.Reply.SYNC).toList());
        return out.close();
    }

    private static void moves(Code out, Library library) {
        out.line("/** The meaning of a request for a session that moves; that of an unknown one is undefined. */");
        out.open("public static io.hawser.cuda.Move move(int opcode)").open("return switch (opcode)");
        for (ApiFunction function : library.travelling()) {
            if (function.move() != ApiFunction.Move.NONE) {
                out.line("case %s -> io.hawser.cuda.Move.%s;", function.symbol(), function.move());
            }
        }
        out.line("default -> io.hawser.cuda.Move.NONE;").close("};").close().line();
    }

    /** The offset of the handle of one type that a request names or creates. */
    private static void offset(Code out, Library library, String name, String type) {
        out.line("/** Offset of a request's %s in its payload; -1 for none. */", type);
        out.open("public static int %s(int opcode)", name).open("return switch (opcode)");
        for (ApiFunction function : library.travelling()) {
            function.request().slots().stream()
                .filter(slot -> slot.param().type().equals(type)
                    || slot.param().shape() == Shape.NEW && slot.param().type().equals(type + " *"))
                .findFirst().ifPresent(slot -> out.line("case %s -> %d;", function.symbol(), slot.offset()));
        }
        out.line("default -> -1;").close("};").close().line();
    }

    private static void predicate(Code out, String name, String doc, List<ApiFunction> functions) {
        out.line("/** %s */", doc);
        out.open("public static boolean %s(int opcode)", name).open("return switch (opcode)");
        functions.forEach(f -> out.line("case %s -> true;", f.symbol()));
        out.line("default -> false;").close("};").close().line();
    }

    /** The macros that are numbers; null when there is none. */
    static Code macros(Library library) {
        Map<String, String> numbers = new LinkedHashMap<>(library.types().macros());
        numbers.values().removeIf(text -> !text.matches("-?(0x[0-9a-fA-F]+|\\d+)"));
        if (numbers.isEmpty()) {
            return null;
        }
        Code out = new Code();
        out.line("package %s;", library.javaPackage()).line();
        out.line("/** Numbers that are macros in the header of the library %s. */", library.name());
        out.open("public final class %sMacros", library.javaName());
        numbers.forEach((name, text) -> {
            out.line("/** %s. */", name);
            long value = Long.decode(text);
            out.line("public static final int %s = %s;", name, value > Integer.MAX_VALUE ? text : value).line();
        });
        return out.open("private %sMacros()", library.javaName()).close().close();
    }

    static Code enumeration(Library library, Enumeration type) {
        Code out = new Code();
        out.line("package %s;", library.javaPackage()).line();
        out.line("/** Values of %s. */", type.name());
        out.open("public final class %s", type.name());
        type.values().forEach((name, value) -> {
            out.line("/** %s. */", name);
            out.line("public static final int %s = %s;", name, value == Integer.MIN_VALUE ? "Integer.MIN_VALUE"
                : value > Integer.MAX_VALUE ? "0x" + Long.toHexString(value) : Long.toString(value)).line();
        });
        out.open("private %s()", type.name()).close().line();
        out.line("/** The enumerator's name, or the number as text when there is none. */");
        out.open("public static String name(int value)").open("return switch (value)");
        Set<Long> seen = new HashSet<>();
        type.values().forEach((name, value) -> {
            // Several enumerators may have one value; the first name is the older one.
            if (seen.add((long) value.intValue())) {
                out.line("case %s -> \"%s\";", name, name);
            }
        });
        out.line("default -> Integer.toString(value);").close("};").close();
        return out.close();
    }

    static Code structure(Library library, Structure type) {
        Code out = new Code();
        out.line("package %s;", library.javaPackage()).line();
        if (type.record()) {
            JavaRecordEmitter.open(out, type);
        } else {
            out.line("/** Layout of %s: offsets and sizes in bytes. */", type.name());
            out.open("public final class %s", type.name());
        }
        out.line("/** Size in bytes. */");
        out.line("public static final int BYTES = %d;", type.size()).line();
        fields(out, "", 0, type);
        if (type.record()) {
            JavaRecordEmitter.members(out, type);
        } else {
            out.open("private %s()", type.name()).close();
        }
        return out.close();
    }

    private static void fields(Code out, String prefix, int base, Structure type) {
        for (Field field : type.fields()) {
            int offset = base + field.offset();
            if (field.anonymous()) {
                fields(out, prefix, offset, (Structure) field.type());
                continue;
            }
            String name = prefix + JavaTypes.upper(field.name());
            String type1 = field.type().name() == null ? "" : field.type().name();
            out.line("/** Offset of %s%s. */", field.name(), type1.isEmpty() ? "" : ", " + type1
                + (field.elements() > 0 ? "[" + field.elements() + "]" : ""));
            out.line("public static final int %s_OFFSET = %d;", name, offset).line();
            if (field.type() instanceof Structure inner && inner.name() == null && field.elements() == 0) {
                fields(out, name + "_", offset, inner);
            }
        }
    }
}
