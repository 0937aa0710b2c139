package io.hawser.cuda.generator.c;

import io.hawser.cuda.generator.emit.Code;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.ApiFunction.Reply;
import io.hawser.cuda.generator.model.CType.Enumeration;
import io.hawser.cuda.generator.model.CType.Structure;
import io.hawser.cuda.generator.model.Group;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Param;
import io.hawser.cuda.generator.model.Param.Shape;
import io.hawser.cuda.generator.model.Wire.Slot;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * Writes {@code hws_<library>_calls.h} and {@code hws_<library>_calls_<group>.c}: for each function that travels, the
 * encoder of its request and the decoder of its reply. The exported function or hand-written code has checked the
 * arguments; pointers that are not nullable must not be NULL.
 */
final class CCallsEmitter {
    private final Library library;

    CCallsEmitter(Library library) {
        this.library = library;
    }

    Code header() {
        Code out = new Code();
        String guard = "HWS_" + library.upperName() + "_CALLS_H";
        out.line("#ifndef %s", guard).line("#define %s", guard).line();
        out.line("#include \"hws_channel.h\"").line("#include \"hws_%s_types.h\"", library.name()).line();
        out.line("#include <stdbool.h>").line();
        result(out);
        for (Group group : library.groups()) {
            for (ApiFunction function : group.travelling()) {
                out.line("%s;", CNames.callPrototype(library, function));
            }
        }
        out.line().line("#endif");
        return out;
    }

    /** Converts a status of a record or of the channel to the library's result. */
    private void result(Code out) {
        String lost = library.errors().lost();
        out.open("static inline %s hws_%s_result(int status)", library.result(), library.name());
        if (lost != null) {
            out.open("if (status != 0 && (status == hws_channel_status() || status > %d))", most())
                .line("return %s; /* also a result of CUDA, which the frame of a call returns */", lost).close();
        }
        out.line("return (%s) status;", library.result()).close().line();
    }

    /** The largest result. */
    private long most() {
        return Collections.max(((Enumeration) library.types().find(library.result())).values().values());
    }

    Code source(Group group) {
        Code out = new Code();
        out.line("#include \"hws_%s_calls.h\"", library.name());
        out.line("#include \"hws_%s_opcodes.h\"", library.name());
        out.line("#include \"hws_wire.h\"").line();
        out.line("#include <string.h>");
        for (ApiFunction function : group.travelling()) {
            function(out, function);
        }
        return out;
    }

    private void function(Code out, ApiFunction function) {
        out.line().open(CNames.callPrototype(library, function));
        function.params().stream().filter(p -> p.shape() == Shape.WORKSPACE)
            .forEach(p -> out.line("(void) %s; /* the worker has its own */", p.name()));
        for (Slot slot : function.request().buffers()) {
            measure(out, slot.param());
        }
        List<Slot> copied = function.request().buffers().stream().filter(s -> !s.param().bulk()).toList();
        encodeFixed(out, function, copied);
        for (Slot slot : copied) {
            Param param = slot.param();
            out.line("hws_at = hws_put_bytes(hws_payload, hws_at, %s, hws_%s_bytes);", param.name(), param.name());
        }
        send(out, function, !copied.isEmpty());
        out.close();
    }

    /** The buffer's length on the wire; the call is refused above its limit. */
    private void measure(Code out, Param param) {
        String length = param.shape() == Shape.TEXT ? "strlen(" + param.name() + ")" : CSizes.emit(param.bytes());
        String absent = param.nullable() ? param.name() + " == NULL ? HWS_NULL_LENGTH : " : "";
        out.line("uint64_t hws_%s_bytes = %s%s;", param.name(), absent, length);
        String exempt = param.nullable() ? param.name() + " != NULL && " : "";
        out.open("if (%shws_%s_bytes > %d)", exempt, param.name(), param.max());
        out.line("return %s; /* over the description's limit */", library.errors().invalidValue());
        out.close();
    }

    private void encodeFixed(Code out, ApiFunction function, List<Slot> copied) {
        int fixed = function.request().fixedBytes();
        if (copied.isEmpty()) {
            if (fixed > 0) {
                out.line("uint8_t hws_payload[%d] = {0};", fixed);
            }
        } else {
            List<String> sizes = new ArrayList<>();
            copied.forEach(s -> sizes.add("hws_padded(hws_" + s.param().name() + "_bytes)"));
            out.line("uint32_t hws_payload_bytes = (uint32_t) (%d + %s);", fixed, String.join(" + ", sizes));
            // Bounded: every buffer has a maximum. Only the fixed part is cleared: clearing all would cost more than a
            // launch.
            out.line("uint8_t hws_payload[hws_payload_bytes];");
            out.line("memset(hws_payload, 0, %d);", fixed);
            out.line("uint32_t hws_at = %d;", fixed);
        }
        for (Slot slot : function.request().slots()) {
            Param param = slot.param();
            String name = param.name();
            switch (param.shape()) {
                case NUMBER -> put(out, slot, CNames.wireType(param.value()), name);
                case HANDLE, NEW, DROP -> put(out, slot, "uint64_t", "(uintptr_t) " + name);
                case STRUCT, INOUT -> out.line("memcpy(hws_payload + %d, %s%s, %d);", slot.offset(),
                    param.isStructureByValue() ? "&" : "", name, param.value().size());
                case TEXT, BYTES, HANDLES -> put(out, slot, "uint32_t", "hws_" + name + "_bytes");
                default -> throw new IllegalStateException(function.symbol() + "." + name);
            }
        }
    }

    private static void put(Code out, Slot slot, String type, String value) {
        out.line("HWS_PUT(hws_payload, %d, %s, %s);", slot.offset(), type, value);
    }

    private void send(Code out, ApiFunction function, boolean variable) {
        Param bulk = function.request().buffers().stream().map(Slot::param).filter(Param::bulk).findFirst()
            .orElse(null);
        int fixed = function.request().fixedBytes();
        String payload = variable ? "hws_payload, hws_payload_bytes"
            : fixed == 0 ? "NULL, 0" : "hws_payload, sizeof hws_payload";
        String tail = bulk == null ? "NULL, 0" : bulk.name() + ", "
            + (bulk.nullable() ? bulk.name() + " == NULL ? 0 : " : "") + "hws_" + bulk.name() + "_bytes";
        String credited = function.credited() ? "HWS_FLAG_CREDITED" : "0";
        String opcode = CNames.opcode(function);
        if (function.reply() == Reply.DATA) {
            sent(out, function, "hws_read(%s, %s, hws_target, hws_wait)".formatted(opcode, payload));
        } else if (function.reply() == Reply.PROBE) {
            if (function.hasOutputs()) {
                out.open("if (%s->onDevice)", function.results().getFirst().name());
            }
            varies(out, function);
            sent(out, function, "hws_probe(%s, %s, %s, hws_varies, sizeof hws_varies / sizeof *hws_varies)".formatted(
                opcode, credited, payload));
            if (function.hasOutputs()) {
                out.close();
                wait(out, function, payload, tail);
            }
        } else if (function.reply() == Reply.ASYNC) {
            sent(out, function, "hws_send(%s, %s, %s, %s)".formatted(opcode, credited, payload, tail));
        } else {
            wait(out, function, payload, tail);
        }
    }

    /** The parts of the payload that do not belong to the call's kind. */
    private static void varies(Code out, ApiFunction function) {
        List<String> ranges = new ArrayList<>();
        function.request().slots().forEach(slot -> ranges.addAll(identity(slot)));
        out.line("static const hws_vary_t hws_varies[] = {%s};", String.join(", ", ranges));
    }

    private void wait(Code out, ApiFunction function, String payload, String tail) {
        if (function.memo()) {
            varies(out, function);
        }
        new CReplyEmitter(library, out).call(function, CNames.opcode(function), function.credited()
            ? "HWS_FLAG_REPLY | HWS_FLAG_CREDITED" : "HWS_FLAG_REPLY", payload, tail);
    }

    /** The parts of the fixed payload in which equal calls may differ: {offset, bytes, whether it is an address}. */
    private static List<String> identity(Slot slot) {
        Param param = slot.param();
        if (param.shape() == Shape.NUMBER && param.type().endsWith("*")) {
            return List.of("{" + slot.offset() + ", 8, true}");
        }
        return param.value() instanceof Structure structure ? structure.fields().stream()
            .filter(f -> f.identity() || f.address())
            .map(f -> "{" + (slot.offset() + f.offset()) + ", " + f.size() + ", " + f.address() + "}").toList()
            : List.of();
    }

    private void sent(Code out, ApiFunction function, String call) {
        out.line("int hws_status = %s;", call);
        watch(out, function);
        out.line("return hws_%s_result(hws_status);", library.name());
    }

    /** Reports the call's stream, if it has one. */
    static void watch(Code out, ApiFunction function) {
        function.params().stream().filter(p -> p.shape() == Shape.HANDLE && p.kind().name().equals("STREAM"))
            .forEach(p -> out.line("hws_watch_stream((uintptr_t) %s);", p.name()));
    }
}
