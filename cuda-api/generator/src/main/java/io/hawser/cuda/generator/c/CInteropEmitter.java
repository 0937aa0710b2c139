package io.hawser.cuda.generator.c;

import io.hawser.cuda.generator.emit.Code;
import io.hawser.cuda.generator.emit.OutputFiles;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.ApiFunction.Reply;
import io.hawser.cuda.generator.model.Description;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Param;
import io.hawser.cuda.generator.model.Param.Shape;
import io.hawser.cuda.generator.model.Wire.Slot;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Writes C that only tests need. For each function: a decoder of its request that then makes the call, and an encoder
 * of the outputs that the call has set.
 */
public final class CInteropEmitter {
    private final Code out = new Code();

    private CInteropEmitter() {
    }

    /** Writes {@code hws_interop_calls.c}, for the harness of cuda-api/interop-tests. */
    public static void emit(Description description, OutputFiles files) throws IOException {
        files.write("hws_interop_calls.c", new CInteropEmitter().file(description));
    }

    private Code file(Description description) {
        out.line("#include \"hws_interop.h\"").line("#include \"hws_wire.h\"");
        for (Library library : description.libraries()) {
            out.line("#include \"hws_%s_calls.h\"", library.name());
            out.line("#include \"hws_%s_opcodes.h\"", library.name());
        }
        out.line().line("#include <stdlib.h>").line("#include <string.h>");
        for (Library library : description.libraries()) {
            library.travelling().forEach(this::function);
        }
        out.line().open("int hws_interop_call(uint32_t opcode, const uint8_t *request, hws_interop_out_t *out)");
        out.open("switch (opcode)");
        for (Library library : description.libraries()) {
            for (ApiFunction function : library.travelling()) {
                out.line("case %s:", CNames.opcode(function));
                out.line("    return interop_%s(request, out);", function.symbol());
            }
        }
        out.line("default:").line("    return HWS_INTEROP_UNKNOWN;");
        out.close().close();
        return out;
    }

    private void function(ApiFunction function) {
        out.line().open("static int interop_%s(const uint8_t *request, hws_interop_out_t *out)", function.symbol());
        out.line("uint32_t at = %d;", function.request().fixedBytes());
        function.request().slots().forEach(this::decode);
        out.line("(void) at;").line("(void) request;");
        for (Slot slot : function.answer().slots()) {
            Param param = slot.param();
            if (param.shape() == Shape.OUT_BYTES) {
                out.line("uint64_t %s_capacity = %s;", param.name(), CSizes.emit(param.bytes()));
                out.line("uint8_t *%s = hws_interop_memory(%s_capacity);", param.name(), param.name());
                out.line("uint32_t %s_bytes = (uint32_t) %s_capacity;", param.name(), param.name());
            } else if (param.shape() != Shape.INOUT) {
                out.line("%s %s;", CNames.wireType(param.value()), param.name());
                out.line("memset(&%s, 0xa5, sizeof %s);", param.name(), param.name());
            }
        }
        out.line("int status = (int) hws_call_%s(%s);", function.symbol(), arguments(function));
        out.open("if (status == 0)");
        encode(function);
        out.close();
        for (Param param : function.params()) {
            if (param.isBuffer()) {
                out.line("free((void *) %s);", param.name());
            }
        }
        out.line("return status;").close();
    }

    private void decode(Slot slot) {
        Param param = slot.param();
        String name = param.name();
        switch (param.shape()) {
            case NUMBER -> out.line("%s %s = (%s) HWS_GET(request, %d, %s);", param.type(), name, param.type(),
                slot.offset(), CNames.wireType(param.value()));
            case HANDLE, NEW, DROP -> out.line("%s %s = (%s) (uintptr_t) HWS_GET(request, %d, uint64_t);",
                param.value().name(), name, param.value().name(), slot.offset());
            case STRUCT, INOUT -> {
                out.line("%s %s;", CNames.wireType(param.value()), name);
                out.line("memcpy(&%s, request + %d, sizeof %s);", name, slot.offset(), name);
            }
            case TEXT, BYTES, HANDLES -> out.line("void *%s = hws_interop_buffer(request, &at, %d, %s);", name,
                slot.offset(), param.shape() == Shape.TEXT);
            default -> throw new IllegalStateException(name);
        }
    }

    private static String arguments(ApiFunction function) {
        List<String> arguments = new ArrayList<>();
        for (Param param : function.params()) {
            switch (param.shape()) {
                case STRUCT, OUT_NUMBER, OUT_STRUCT, INOUT -> arguments.add(param.isStructureByValue() ? param.name()
                    : "(void *) &" + param.name());
                case OUT_BYTES -> arguments.add("(void *) " + param.name());
                default -> arguments.add(param.name());
            }
            if (param.variable()) {
                arguments.add("&" + param.name() + "_bytes");
            }
        }
        if (function.reply() == Reply.DATA) {
            arguments.add("NULL");
            arguments.add("true");
        }
        return String.join(", ", arguments);
    }

    private void encode(ApiFunction function) {
        out.line("hws_interop_fixed(out, %d);", function.answer().fixedBytes());
        for (Slot slot : function.answer().slots()) {
            Param param = slot.param();
            if (param.isBuffer()) {
                out.line("hws_interop_bytes(out, %d, %s, %s_bytes);", slot.offset(), param.name(), param.name());
            } else {
                out.line("memcpy(out->bytes + %d, &%s, %d);", slot.offset(), param.name(), param.value().size());
            }
        }
    }
}
