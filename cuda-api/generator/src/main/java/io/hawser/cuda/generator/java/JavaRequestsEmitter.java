package io.hawser.cuda.generator.java;

import io.hawser.cuda.generator.emit.Code;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.ApiFunction.Reply;
import io.hawser.cuda.generator.model.CType.Field;
import io.hawser.cuda.generator.model.CType.Structure;
import io.hawser.cuda.generator.model.Group;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Param;
import io.hawser.cuda.generator.model.Wire.Slot;
import java.util.stream.Collectors;

/** Writes encoders of requests, as a guest sends them: for tests and tools. */
final class JavaRequestsEmitter {
    private final Library library;

    JavaRequestsEmitter(Library library) {
        this.library = library;
    }

    Code emit(Group group) {
        Code out = new Code();
        String opcodes = library.javaName() + "Opcodes";
        out.line("package %s.client;", library.javaPackage()).line();
        out.line("import io.hawser.shm.wire.RecordLayout;").line("import io.hawser.shm.wire.RecordWriter;");
        out.line("import %s.%s;", library.javaPackage(), opcodes);
        group.travelling().stream().flatMap(f -> f.params().stream()).filter(Param::isRecord)
            .map(p -> p.value().name()).distinct().sorted()
            .forEach(name -> out.line("import %s.%s;", library.javaPackage(), name));
        out.line("import java.lang.foreign.MemorySegment;").line();
        out.block("""
            /**
             * Writes requests of this group as a guest sends them: handles are the guest's ids. Each method writes
             * a whole record and returns its length in bytes.
             */""");
        out.open("public final class %sRequests", group.javaName());
        out.open("private %sRequests()", group.javaName()).close();
        for (ApiFunction function : group.travelling()) {
            String parameters = function.request().slots().stream().map(s -> ", " + type(s.param()) + " "
                + s.param().name()).collect(Collectors.joining());
            String flags = (function.reply() == Reply.ASYNC ? "0" : "RecordLayout.FLAG_REPLY")
                + (function.credited() ? " | RecordLayout.FLAG_CREDITED" : "");
            out.line().line("/** Request of %s. */", function.symbol());
            out.open("public static int %s(RecordWriter writer, long sequence, int thread, int context%s)",
                function.symbol(), parameters);
            out.line("writer.begin(%s.%s, sequence, thread, context, %s);", opcodes, function.symbol(), flags);
            out.line("writer.fixed(%d);", function.request().fixedBytes());
            function.request().slots().forEach(slot -> put(out, slot));
            out.line("return writer.end();").close();
        }
        return out.close();
    }

    private static String type(Param param) {
        return JavaTypes.decoded(param);
    }

    private static void put(Code out, Slot slot) {
        Param param = slot.param();
        switch (param.shape()) {
            case NUMBER -> out.line("writer.%s(%d, %s);", JavaTypes.accessor(param.value()), slot.offset(),
                param.name());
            case HANDLE, NEW, DROP -> out.line("writer.i64(%d, %s);", slot.offset(), param.name());
            case STRUCT, INOUT -> {
                if (param.isRecord()) {
                    record(out, (Structure) param.value(), slot.offset(), param.name());
                } else {
                    out.line("writer.struct(%d, %s, 0, %d);", slot.offset(), param.name(), param.value().size());
                }
            }
            case TEXT -> out.line("writer.string(%d, %s);", slot.offset(), param.name());
            case BYTES, HANDLES -> out.line("writer.buffer(%d, %s);", slot.offset(), param.name());
            default -> throw new IllegalStateException(param.name());
        }
    }

    private static void record(Code out, Structure type, int offset, String value) {
        for (Field field : type.fields()) {
            String part = value + "." + field.name() + "()";
            if (field.type() instanceof Structure inner) {
                record(out, inner, offset + field.offset(), part);
            } else {
                out.line("writer.%s(%d, %s);", JavaTypes.accessor(field.type()), offset + field.offset(), part);
            }
        }
    }
}
