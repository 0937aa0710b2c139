package io.hawser.cuda.generator.c;

import io.hawser.cuda.generator.emit.Code;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Param;
import io.hawser.cuda.generator.model.Param.Shape;
import io.hawser.cuda.generator.model.Wire.Slot;
import java.util.List;

/** Writes the waiting call and the decoder of its reply; outputs are set only when the whole reply is valid. */
final class CReplyEmitter {
    private final Library library;
    private final Code out;

    CReplyEmitter(Library library, Code out) {
        this.library = library;
        this.out = out;
    }

    void call(ApiFunction function, String opcode, String flags, String payload, String bulk) {
        List<Slot> buffers = function.answer().buffers();
        int fixed = function.answer().fixedBytes();
        StringBuilder capacity = new StringBuilder().append(fixed);
        for (Slot slot : buffers) {
            Param param = slot.param();
            out.line("uint64_t hws_%s_capacity = %s;", param.name(), CSizes.emit(param.bytes()));
            out.open("if (hws_%s_capacity > %d)", param.name(), param.max());
            out.line("return %s; /* over the description's limit */", library.errors().invalidValue());
            out.close();
            capacity.append(" + hws_padded(hws_").append(param.name()).append("_capacity)");
        }
        String reply = "NULL, 0";
        if (fixed > 0) {
            out.line("uint8_t hws_reply[%s];", capacity);
            reply = "hws_reply, (uint32_t) sizeof hws_reply";
        }
        out.line("uint32_t hws_reply_bytes = 0;");
        if (function.memo()) {
            out.line("int hws_status = hws_ask(%s, %s, hws_varies, sizeof hws_varies / sizeof *hws_varies, %s,", opcode,
                payload, reply).line("    &hws_reply_bytes);");
        } else {
            out.line("int hws_status = hws_call(%s, %s, %s, %s, %s, &hws_reply_bytes);", opcode, flags, payload, bulk,
                reply);
        }
        CCallsEmitter.watch(out, function);
        out.open("if (hws_status != 0)").line("return hws_%s_result(hws_status);", library.name()).close();
        check(function, fixed, buffers);
        for (Slot slot : function.answer().slots()) {
            set(slot);
        }
        setBuffers(fixed, buffers);
        out.line("return (%s) 0;", library.result());
    }

    private void check(ApiFunction function, int fixed, List<Slot> buffers) {
        if (buffers.isEmpty()) {
            out.open("if (hws_reply_bytes != %d)", fixed);
        } else {
            out.open("if (hws_reply_bytes < %d)", fixed);
            bad(function);
            out.close();
            StringBuilder wanted = new StringBuilder().append(fixed);
            StringBuilder wrong = new StringBuilder();
            for (Slot slot : buffers) {
                Param param = slot.param();
                out.line("uint32_t hws_%s_bytes = HWS_GET(hws_reply, %d, uint32_t);", param.name(), slot.offset());
                wrong.append("hws_").append(param.name()).append(param.variable() ? "_bytes > " : "_bytes != ")
                    .append("hws_").append(param.name()).append("_capacity || ");
                wanted.append(" + hws_padded(hws_").append(param.name()).append("_bytes)");
            }
            out.open("if (%shws_reply_bytes != %s)", wrong, wanted);
        }
        bad(function);
        out.close();
    }

    private void bad(ApiFunction function) {
        out.line("return hws_%s_result(hws_bad_reply(\"%s\", hws_reply_bytes));", library.name(), function.symbol());
    }

    private void set(Slot slot) {
        Param param = slot.param();
        if (param.isBuffer()) {
            return;
        }
        String copy = String.format("memcpy(%s, hws_reply + %d, %d);", param.name(), slot.offset(),
            param.value().size());
        if (param.nullable()) {
            out.open("if (%s != NULL)", param.name()).line(copy).close();
        } else {
            out.line(copy);
        }
    }

    private void setBuffers(int fixed, List<Slot> buffers) {
        StringBuilder at = new StringBuilder().append(fixed);
        for (Slot slot : buffers) {
            Param param = slot.param();
            assert param.shape() == Shape.OUT_BYTES;
            out.open("if (hws_%s_bytes > 0 && %s != NULL)", param.name(), param.name());
            out.line("memcpy(%s, hws_reply + %s, hws_%s_bytes);", param.name(), at, param.name());
            out.close();
            if (param.variable()) {
                out.line("*%s_bytes_p = hws_%s_bytes;", param.name(), param.name());
            }
            at.append(" + hws_padded(hws_").append(param.name()).append("_bytes)");
        }
    }
}
