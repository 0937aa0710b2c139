package io.hawser.cuda.generator.c;

import io.hawser.cuda.generator.emit.Code;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.Group;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Param;
import io.hawser.cuda.generator.model.Param.Shape;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/** Writes {@code hws_<library>_stubs_<group>.c}: the exported functions that are not hand-written. */
final class CStubsEmitter {
    private final Library library;

    CStubsEmitter(Library library) {
        this.library = library;
    }

    /** The group's file, or null when all its functions are manual. */
    Code source(Group group) {
        Code out = new Code();
        out.line("#include \"hws_%s_calls.h\"", library.name()).line("#include \"%s\"", library.guestHeader());
        out.line("#include \"hws_wire.h\"");
        String head = out.toString();
        for (ApiFunction function : group.functions()) {
            if (function.exported()) {
                stubs(out, function);
            }
        }
        return out.toString().equals(head) ? null : out;
    }

    private void stubs(Code out, ApiFunction function) {
        if (function.sameAs() != null) {
            for (String suffix : CNames.suffixes(function)) {
                sameAs(out, function, suffix);
            }
            return;
        }
        if (function.generatedStub()) {
            open(out, function, "");
            forward(out, function);
            out.close();
        }
        // Writes the second name of a hand-written function as well, if the two differ only in the stream.
        if (function.stream() != null) {
            for (String suffix : CNames.suffixes(function)) {
                if (!suffix.isEmpty()) {
                    open(out, function, suffix);
                    perThread(out, function);
                    out.close();
                }
            }
        }
    }

    private void open(Code out, ApiFunction function, String suffix) {
        out.line().open("HWS_EXPORT %s %s%s(%s)", library.result(), function.symbol(), suffix,
            CNames.parameters(function.params()));
    }

    private void perThread(Code out, ApiFunction function) {
        String stream = function.stream().name();
        String arguments = function.params().stream().map(p -> p.name().equals(stream)
            ? stream + " == NULL ? CU_STREAM_PER_THREAD : " + stream : p.name())
            .collect(Collectors.joining(", "));
        out.line("return %s(%s);", function.symbol(), arguments);
    }

    private void sameAs(Code out, ApiFunction function, String suffix) {
        ApiFunction target = library.functions().stream().filter(f -> f.symbol().equals(function.sameAs()))
            .findFirst().orElseThrow();
        open(out, function, suffix);
        List<String> arguments = new ArrayList<>();
        for (Param wanted : target.params()) {
            boolean own = function.params().stream().anyMatch(p -> p.name().equals(wanted.name()));
            boolean stream = wanted.type().equals("CUstream");
            if (own && stream && !suffix.isEmpty()) {
                arguments.add(wanted.name() + " == NULL ? CU_STREAM_PER_THREAD : " + wanted.name());
            } else if (own) {
                arguments.add(wanted.name());
            } else {
                arguments.add(function.with().getOrDefault(wanted.name(),
                    suffix.isEmpty() ? "NULL" : "CU_STREAM_PER_THREAD"));
            }
        }
        out.line("return %s(%s);", target.symbol(), String.join(", ", arguments));
        out.close();
    }

    private void forward(Code out, ApiFunction function) {
        out.line(function.context() ? "HWS_ENTER_CONTEXT();" : "HWS_ENTER();");
        List<String> arguments = new ArrayList<>();
        // The size of a number may be part of a descriptor's content.
        function.params().stream().filter(p -> p.conversion() != null).forEach(p -> check(out, p));
        for (Param param : function.params()) {
            if (param.conversion() == null) {
                check(out, param);
            }
            arguments.add(param.shape() == Shape.NEW ? "(" + param.value().name() + ") (uintptr_t) hws_new"
                : param.conversion() != null || param.scalar() != null ? "hws_" + param.name() : param.name());
        }
        String call = "hws_call_" + function.symbol() + "(" + String.join(", ", arguments) + ")";
        Param created = function.created();
        if (created != null) {
            create(out, created, call);
            return;
        }
        if (!function.results().isEmpty()) {
            out.line("%s hws_status = %s;", library.result(), call);
            out.open("if (hws_status == (%s) 0)", library.result());
            function.results().forEach(p -> out.line("HWS_RESULT(%s, hws_%s, %s);", p.name(), p.name(),
                CSizes.emitInStub(p.scalar().bytes())));
            out.close().line("return hws_status;");
            return;
        }
        Param dropped = function.params().stream().filter(p -> p.shape() == Shape.DROP).findFirst().orElse(null);
        if (dropped == null) {
            out.line("return %s;", call);
            return;
        }
        out.line("%s hws_status = %s;", library.result(), call);
        out.line("hws_handle_drop(HWS_KIND_%s, (uintptr_t) %s);", dropped.kind().name(), dropped.name());
        out.line("return hws_status;");
    }

    private void check(Code out, Param param) {
        String name = param.name();
        if (param.scalar() != null) {
            out.line("%s%s *hws_%s = HWS_SCALAR(%s, %s, %s, %s);", param.scalar().isResult() ? "" : "const ",
                param.value().name(), name, param.value().name(), name, CSizes.emitInStub(param.scalar().bytes()),
                param.scalar().isRead());
            out.line("HWS_REQUIRE(hws_%s != NULL);", name);
            return;
        }
        switch (param.shape()) {
            case HANDLE, DROP -> {
                if (param.shape() == Shape.DROP && param.kind().special() > 0) {
                    // The library's own constants are legal handles, but a program must not destroy them.
                    out.open("if ((uintptr_t) %s <= %d)", name, param.kind().special());
                    out.line("return %s;", library.errors().invalidHandle()).close();
                }
                if (param.nullable()) {
                    out.open("if (%s != NULL)", name);
                }
                out.line("HWS_CHECK_HANDLE(HWS_KIND_%s, %s);", param.kind().name(), name);
                if (param.nullable()) {
                    out.close();
                }
            }
            case HANDLES -> {
                out.line("HWS_REQUIRE(%s != NULL || %s == 0);", name, CSizes.emit(param.bytes()));
                // Before the loop, so that a wild count cannot make it read beyond the program's memory.
                out.line("HWS_REQUIRE(%s <= %d);", CSizes.emit(param.bytes()), param.max());
                out.open("for (uint64_t hws_i = 0; hws_i < %s / sizeof *%s; hws_i++)", CSizes.emit(param.bytes()),
                    name);
                out.line("HWS_CHECK_HANDLE(HWS_KIND_%s, %s[hws_i]);", param.kind().name(), name);
                out.close();
            }
            case BYTES, OUT_BYTES -> {
                if (!param.nullable()) {
                    out.line("HWS_REQUIRE(%s != NULL || %s == 0);", name, CSizes.emit(param.bytes()));
                }
            }
            case NEW -> out.line("HWS_REQUIRE(%s != NULL);", name);
            case STRUCT, TEXT, OUT_NUMBER, OUT_STRUCT, INOUT -> {
                if (param.conversion() != null) {
                    out.line("const %s *hws_%s = %s;", param.value().name(), name, param.conversion());
                    out.line("HWS_REQUIRE(hws_%s != NULL);", name);
                } else if (!param.nullable() && !param.isStructureByValue()) {
                    out.line("HWS_REQUIRE(%s != NULL);", name);
                }
            }
            case WORKSPACE -> out.line("HWS_REQUIRE(%s != NULL || %s == 0);", name, CSizes.emit(param.bytes()));
            case NUMBER, LOCAL -> {}
        }
    }

    private void create(Code out, Param created, String call) {
        String kind = created.kind().name();
        out.line("uint64_t hws_new = hws_handle_new(HWS_KIND_%s);", kind);
        out.open("if (hws_new == 0)").line("return %s;", library.errors().outOfMemory()).close();
        out.line("%s hws_status = %s;", library.result(), call);
        out.open("if (hws_status != (%s) 0)", library.result());
        out.line("hws_handle_drop(HWS_KIND_%s, hws_new);", kind);
        out.line("return hws_status;");
        out.close();
        out.line("*%s = (%s) (uintptr_t) hws_new;", created.name(), created.value().name());
        out.line("return hws_status;");
    }
}
