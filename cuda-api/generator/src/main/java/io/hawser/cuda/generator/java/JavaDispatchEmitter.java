package io.hawser.cuda.generator.java;

import io.hawser.cuda.generator.emit.Code;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.CType;
import io.hawser.cuda.generator.model.Group;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Param;
import io.hawser.cuda.generator.model.Param.Shape;
import io.hawser.cuda.generator.model.Wire.Slot;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/** Writes the dispatcher and, for each group, the serving of its requests: decode, resolve, check, call, reply. */
final class JavaDispatchEmitter {
    private final Library library;

    JavaDispatchEmitter(Library library) {
        this.library = library;
    }

    Code dispatcher() {
        Code out = new Code();
        String name = library.javaName();
        List<Group> manual = library.groups().stream().filter(g -> !g.only(ApiFunction::manual).isEmpty()).toList();
        out.line("package %s;", library.javaPackage()).line();
        out.line("import io.hawser.cuda.CallContext;").line("import io.hawser.shm.wire.RecordLayout;");
        out.line("import io.hawser.shm.wire.RecordReader;").line();
        out.block("""
            /**
             * Serves requests of the library %s; no guest's bytes make it throw.
             *
             * @param <C> the calls that it serves.
             */""".formatted(library.name()));
        out.open("public final class %sDispatcher<C extends CallContext>", name);
        out.line("private final %sDriver driver;", name);
        manual.forEach(g -> out.line("private final %s<C> %s;", JavaManualEmitter.name(g), field(g)));
        JavaRecordEmitter.fields(out, library);
        out.line().line("/** Creates a dispatcher. */");
        String parameters = manual.stream().map(g -> ", " + JavaManualEmitter.name(g) + "<C> " + field(g))
            .collect(Collectors.joining());
        out.open("public %sDispatcher(%sDriver driver%s)", name, name, parameters);
        out.line("this.driver = driver;");
        manual.forEach(g -> out.line("this.%s = %s;", field(g), field(g)));
        out.close().line();
        out.block("""
            /**
             * Serves one request, which ends by finish, fail or fatal, or is deferred. Decoder's thread only. The
             * guest chooses the reply flag. The description determines the credit flag, because work without
             * credit would be unbounded.
             */""");
        out.open("public void dispatch(C call)");
        out.line("RecordReader in = call.in();");
        out.line("int opcode = in.opcode();");
        out.open("if (((in.flags() & RecordLayout.FLAG_CREDITED) != 0) != %sOpcodes.isCredited(opcode))", name);
        out.line("call.fatal(\"the credit flag must be the described one: function=\" + %sOpcodes.name(opcode)", name);
        out.line("        + \", flags=\" + in.flags());").line("return;").close();
        out.open("switch (opcode)");
        for (Group group : library.groups()) {
            for (ApiFunction function : group.travelling()) {
                out.line("case %sOpcodes.%s -> %sDispatch.%s(call, %s%s);", name, function.symbol(), group.javaName(),
                    function.symbol(), function.manual() ? field(group) : "driver",
                    JavaRecordEmitter.arguments(function));
            }
        }
        out.line("default -> call.fatal(\"an opcode must be described: opcode=\" + %sOpcodes.name(opcode));", name);
        out.close().close();
        return out.close();
    }

    private static String field(Group group) {
        String name = group.javaName();
        return Character.toLowerCase(name.charAt(0)) + name.substring(1) + "Calls";
    }

    Code group(Group group) {
        Code out = new Code();
        out.line("package %s;", library.javaPackage()).line();
        out.line("import io.hawser.cuda.CallContext;").line("import io.hawser.cuda.Sizes;");
        if (!library.javaPackage().equals("io.hawser.cuda.generated")) {
            out.line("import io.hawser.cuda.generated.HandleKind;");
        }
        out.line("import io.hawser.shm.wire.RecordReader;");
        out.line("import java.lang.foreign.MemorySegment;").line("import java.lang.foreign.ValueLayout;").line();
        out.line("/** Serves the requests of the group %s. */", group.name());
        out.open("final class %sDispatch", group.javaName());
        out.open("private %sDispatch()", group.javaName()).close();
        for (ApiFunction function : group.travelling()) {
            out.line();
            if (function.manual()) {
                out.open("static <C extends CallContext> void %s(C call, %s<C> manual%s)", function.symbol(),
                    JavaManualEmitter.name(group), JavaRecordEmitter.parameters(function));
            } else {
                out.open("static void %s(CallContext call, %sDriver driver)", function.symbol(), library.javaName());
            }
            decode(out, function);
            resolve(out, function);
            if (function.manual()) {
                List<String> arguments = new ArrayList<>(List.of("call"));
                arguments.addAll(JavaManualEmitter.arguments(function));
                out.line("manual.%s(%s);", function.symbol(), String.join(", ", arguments));
            } else {
                serve(out, group, function);
            }
            out.close();
        }
        return out.close();
    }

    private void decode(Code out, ApiFunction function) {
        if (library.uses() != null) {
            out.line("call.answerIn(%s.%s, %s.%s);", library.javaResult(), library.errors().invalidValue(),
                library.javaResult(), library.errors().invalidHandle());
        }
        out.line("RecordReader in = call.in();");
        out.line("in.begin(%d);", function.request().fixedBytes());
        for (Slot slot : function.request().slots()) {
            Param param = slot.param();
            String name = param.name();
            switch (param.shape()) {
                case NUMBER -> out.line("%s %s = in.%s(%d);", JavaTypes.number(param.value()), name,
                    JavaTypes.accessor(param.value()), slot.offset());
                case HANDLE, NEW, DROP -> out.line("long %sId = in.i64(%d);", name, slot.offset());
                case STRUCT -> out.line(param.isRecord() ? "%s.read(in, %d);"
                    : "MemorySegment %s = in.slice(%d, %d);",
                    param.conversion() == null && param.scalar() == null ? name : name + "Content",
                    slot.offset(), param.value().size());
                case INOUT -> out.line("MemorySegment %sIn = in.slice(%d, %d);", name, slot.offset(),
                    param.value().size());
                case TEXT -> out.line("String %s = in.string%s(%d, %d);", name, param.nullable() ? "OrNull" : "",
                    slot.offset(), param.max());
                case BYTES, HANDLES -> buffer(out, slot, param);
                default -> throw new IllegalStateException(function.symbol() + "." + name);
            }
        }
        out.open("if (!in.end())").line("call.fatal(\"%s: \" + in.reason());", function.symbol()).line("return;")
            .close();
    }

    /** Requires a buffer to have exactly the length of its size expression. */
    private static void buffer(Code out, Slot slot, Param param) {
        String name = param.shape() == Shape.HANDLES ? param.name() + "Ids" : param.name();
        out.line("MemorySegment %s = in.buffer%s(%d, %d);", name, param.nullable() ? "OrNull" : "", slot.offset(),
            param.max());
    }

    private void resolve(Code out, ApiFunction function) {
        for (Slot slot : function.request().slots()) {
            Param param = slot.param();
            if (param.shape() == Shape.BYTES || param.shape() == Shape.HANDLES) {
                String name = param.shape() == Shape.HANDLES ? param.name() + "Ids" : param.name();
                String exempt = param.nullable() ? name + " != null && " : "";
                out.open("if (%s%s.byteSize() != %s)", exempt, name, size(function, param.bytes()));
                out.line("call.fatal(\"%s: a buffer must have the described length: %sBytes=\" + %s.byteSize());",
                    function.symbol(), param.name(), name).line("return;").close();
            }
        }
        for (Param param : function.params()) {
            if (param.scalar() != null) {
                scalar(out, function, param);
                continue;
            }
            switch (param.shape()) {
                case HANDLE, DROP -> handle(out, function, param);
                case HANDLES -> handles(out, function, param);
                case STRUCT -> {
                    if (param.conversion() != null) {
                        out.line("MemorySegment %s = call.object(\"%s\", %sContent);", param.name(),
                            param.value().name(), param.name());
                        out.open("if (call.isRejected())");
                        rejected(out, function);
                    }
                }
                case WORKSPACE -> {
                    String bytes = size(function, param.bytes());
                    out.open("if (Long.compareUnsigned(%s, %d) > 0)", bytes, param.max());
                    out.line("call.fail(%s.%s); // %s", library.javaResult(), library.errors().outOfMemory(),
                        "over the description's limit");
                    rejected(out, function);
                    out.line("MemorySegment %s = call.workspace(%s);", param.name(), bytes);
                }
                case NUMBER -> {
                    if (param.device() != null) {
                        out.open("if (%s!call.checkDevice(%s, %s))", param.nullable() ? param.name() + " != 0 && " : "",
                            param.name(), size(function, param.device()));
                        rejected(out, function);
                    }
                }
                default -> {}
            }
        }
    }

    /** A result is written into a copy of its structure, which the reply carries. */
    private void scalar(Code out, ApiFunction function, Param param) {
        if (param.scalar().isResult()) {
            out.line("MemorySegment %sContent = call.scratch(%d).copyFrom(%sIn);", param.name(), param.value().size(),
                param.name());
        }
        out.line("MemorySegment %s = call.number(%sContent, %s);", param.name(), param.name(),
            size(function, param.scalar().bytes()));
        out.open("if (call.isRejected())");
        rejected(out, function);
    }

    private static void handle(Code out, ApiFunction function, Param param) {
        String name = param.name();
        if (param.shape() == Param.Shape.DROP && param.kind().special() > 0) {
            out.open("if (Long.compareUnsigned(%sId, %d) <= 0)", name, param.kind().special());
            out.line("call.fatal(\"%s: the library's own handles are not destroyed: %s=\" + %sId);",
                function.symbol(), name, name).line("return;").close();
        }
        String resolve = "call.handle(HandleKind." + param.kind().name() + ", " + name + "Id)";
        out.line("long %s = %s%s;", name, param.nullable() ? name + "Id == 0 ? 0 : " : "", resolve);
        out.open("if (call.isRejected())");
        rejected(out, function);
    }

    private static void handles(Code out, ApiFunction function, Param param) {
        String name = param.name();
        out.line("MemorySegment %s = call.scratch(%sIds.byteSize());", name, name);
        out.open("for (long i = 0; i < %s.byteSize(); i += 8)", name);
        out.line("%s.set(ValueLayout.JAVA_LONG, i, call.handle(HandleKind.%s,", name, param.kind().name());
        out.line("        %sIds.get(ValueLayout.JAVA_LONG_UNALIGNED, i)));", name);
        out.open("if (call.isRejected())");
        rejected(out, function);
        out.close();
    }

    /**
     * Ends the generated method after a rejected call, with its created handle registered as failed. Closes the open
     * block.
     */
    private static void rejected(Code out, ApiFunction function) {
        Param created = function.created();
        if (created != null) {
            out.line("call.registerFailed(HandleKind.%s, %sId);", created.kind().name(), created.name());
        }
        out.line("return;").close();
    }

    private void serve(Code out, Group group, ApiFunction function) {
        for (Param param : function.params()) {
            switch (param.shape()) {
                case NEW -> out.line("MemorySegment %s = call.scratch(8);", param.name());
                case OUT_NUMBER, OUT_STRUCT -> out.line("MemorySegment %s = call.scratch(%d);", param.name(),
                    param.value().size());
                case OUT_BYTES -> {
                    out.line("long %sBytes = %s;", param.name(), size(function, param.bytes()));
                    out.open("if (%sBytes > %d)", param.name(), param.max());
                    out.line("call.fatal(\"%s: a reply must not exceed its limit: %sBytes=\" + %sBytes);",
                        function.symbol(), param.name(), param.name()).line("return;").close();
                    out.line("MemorySegment %s = call.scratch(%sBytes);", param.name(), param.name());
                }
                case INOUT -> {
                    if (param.scalar() == null) {
                        out.line("MemorySegment %s = call.scratch(%d).copyFrom(%sIn);", param.name(),
                            param.value().size(), param.name());
                    }
                }
                default -> {}
            }
        }
        List<String> arguments = new ArrayList<>(JavaDriverEmitter.familyArguments(library, function));
        function.params().forEach(p -> arguments.add(p.name()));
        out.line("int cuResult = driver.%s(%s);", function.method(), String.join(", ", arguments));
        for (Param param : function.params()) {
            if (param.shape() == Shape.NEW) {
                out.open("if (cuResult == 0)");
                out.line("call.register(HandleKind.%s, %sId, %s.get(ValueLayout.JAVA_LONG, 0));",
                    param.kind().name(), param.name(), param.name());
                out.close("} else {");
                out.line("    call.registerFailed(HandleKind.%s, %sId);", param.kind().name(), param.name());
                out.line("}");
            } else if (param.shape() == Shape.DROP) {
                // After a failure too: the guest has already dropped the handle.
                out.line("call.drop(HandleKind.%s, %sId);", param.kind().name(), param.name());
            }
        }
        if (function.hasOutputs()) {
            // An address on the device is a segment without bytes.
            out.open("if (cuResult == 0%s)", function.results().isEmpty() ? ""
                : " && " + function.results().getFirst().name() + ".byteSize() != 0");
            String values = function.answer().slots().stream().map(s -> ", " + value(s.param()))
                .collect(Collectors.joining());
            out.line("%sReplies.%s(call.reply()%s);", group.javaName(), function.symbol(), values);
            out.close();
        }
        out.line("call.finish(cuResult);");
    }

    private static String value(Param param) {
        return param.scalar() != null ? param.name() + "Content"
            : JavaTypes.answered(param).equals("MemorySegment") ? param.name()
            : param.name() + ".get(" + JavaTypes.layout(param.value()) + ", 0)";
    }

    private static String size(ApiFunction function, io.hawser.cuda.generator.model.SizeExpression size) {
        return size.emit(name -> reference(function, name), "Sizes.", "L");
    }

    /** An array, a number, a record's field, a field of a descriptor's content, or the memory of a descriptor. */
    private static String reference(ApiFunction function, String name) {
        String[] names = name.split("\\.");
        if (function.isArray(name)) {
            return name;
        }
        if (!function.isDescriptor(names[0])) {
            return JavaTypes.unsigned(function.number(name), name.contains(".") ? name + "()" : name);
        }
        if (names.length == 1) {
            return name + ".byteSize()";
        }
        CType.Structure content = (CType.Structure) function.params().stream().filter(p -> p.name().equals(names[0]))
            .findFirst().orElseThrow().value();
        return JavaTypes.unsigned(function.number(name), "%sContent.get(%s_UNALIGNED, %d)".formatted(names[0],
            JavaTypes.layout(function.number(name)), content.field(names[1]).offset()));
    }

}
