package io.hawser.cuda.generator.java;

import io.hawser.cuda.generator.emit.Code;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.Group;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Param;
import io.hawser.cuda.generator.model.Wire.Slot;
import java.util.List;
import java.util.stream.Collectors;

/** Writes the encoders of replies and, for the guest's side in Java, their decoders. */
final class JavaRepliesEmitter {
    private final Library library;

    JavaRepliesEmitter(Library library) {
        this.library = library;
    }

    private static List<ApiFunction> answering(Group group) {
        return group.only(f -> f.travels() && f.hasOutputs());
    }

    /** The group's encoders, or null when none of its functions has outputs. */
    Code writers(Group group) {
        if (answering(group).isEmpty()) {
            return null;
        }
        Code out = new Code();
        out.line("package %s;", library.javaPackage()).line();
        out.line("import io.hawser.shm.wire.RecordWriter;").line("import java.lang.foreign.MemorySegment;").line();
        out.line("/** Writes the outputs of the group %s into replies after the header. */", group.name());
        out.open("public final class %sReplies", group.javaName());
        out.open("private %sReplies()", group.javaName()).close();
        for (ApiFunction function : answering(group)) {
            String parameters = function.answer().slots().stream().map(s -> ", " + JavaTypes.answered(s.param()) + " "
                + s.param().name()).collect(Collectors.joining());
            out.line().line("/** Outputs of %s. */", function.symbol());
            out.open("public static void %s(RecordWriter reply%s)", function.symbol(), parameters);
            out.line("reply.fixed(%d);", function.answer().fixedBytes());
            for (Slot slot : function.answer().slots()) {
                Param param = slot.param();
                if (param.isBuffer()) {
                    out.line("reply.buffer(%d, %s);", slot.offset(), param.name());
                } else if (JavaTypes.answered(param).equals("MemorySegment")) {
                    out.line("reply.struct(%d, %s, 0, %d);", slot.offset(), param.name(), param.value().size());
                } else {
                    out.line("reply.%s(%d, %s);", JavaTypes.accessor(param.value()), slot.offset(), param.name());
                }
            }
            out.close();
        }
        return out.close();
    }

    /** The group's decoders, or null. */
    Code readers(Group group) {
        if (answering(group).isEmpty()) {
            return null;
        }
        Code out = new Code();
        out.line("package %s.client;", library.javaPackage()).line();
        out.line("import io.hawser.shm.wire.RecordReader;").line("import java.lang.foreign.MemorySegment;").line();
        out.block("""
            /**
             * Reads outputs from replies with status 0, as a guest does. Segments lie in the reply's memory. Each
             * method returns null when the reply is malformed.
             */""");
        out.open("public final class %sReplyReader", group.javaName());
        out.open("private %sReplyReader()", group.javaName()).close();
        for (ApiFunction function : answering(group)) {
            String fields = function.answer().slots().stream().map(s -> JavaTypes.answered(s.param()) + " "
                + s.param().name()).collect(Collectors.joining(", "));
            String type = "Reply_" + function.symbol();
            out.line().line("/** Outputs of %s. */", function.symbol());
            out.open("public record %s(%s)", type, fields).close().line();
            out.line("/** Reads the outputs of %s. */", function.symbol());
            out.open("public static %s %s(RecordReader in)", type, function.symbol());
            out.line("in.begin(%d);", function.answer().fixedBytes());
            String values = function.answer().slots().stream().map(JavaRepliesEmitter::read)
                .collect(Collectors.joining(", "));
            out.line("%s reply = new %s(%s);", type, type, values);
            out.line("return in.end() ? reply : null;").close();
        }
        return out.close();
    }

    private static String read(Slot slot) {
        Param param = slot.param();
        if (param.isBuffer()) {
            return "in.buffer(" + slot.offset() + ", " + param.max() + ")";
        }
        return JavaTypes.answered(param).equals("MemorySegment")
            ? "in.slice(" + slot.offset() + ", " + param.value().size() + ")"
            : "in." + JavaTypes.accessor(param.value()) + "(" + slot.offset() + ")";
    }
}
