package io.hawser.shm.layout;

import io.hawser.shm.layout.RecordDescription.Constant;
import io.hawser.shm.layout.RecordDescription.Control;
import io.hawser.shm.layout.RecordDescription.Field;
import io.hawser.shm.layout.RecordDescription.HeaderField;

/** Writes {@code hws_layout.h}: the header as a struct that the compiler checks, and the constants. */
final class CLayoutEmitter {
    private final StringBuilder out = new StringBuilder();

    String emit(RecordDescription record) {
        out.append("/* Generated from record.yaml. The record that every carrier transports, little-endian. */\n"
            + "#ifndef HWS_LAYOUT_H\n#define HWS_LAYOUT_H\n\n"
            + "#include <stddef.h>\n#include <stdint.h>\n\n"
            + "_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, \"records are little-endian\");\n\n");
        define("PROTOCOL_VERSION", Integer.toString(record.protocolVersion()), "version of the records");
        header(record);
        record.constants().forEach(constant -> number(constant.name(), constant));
        record.refusals().forEach(constant -> number("REFUSED_" + constant.name(), constant));
        for (Control control : record.controls()) {
            control(control);
        }
        out.append("\n#endif\n");
        return out.toString();
    }

    private void header(RecordDescription record) {
        out.append("\ntypedef struct hws_record_header {\n");
        for (HeaderField field : record.header()) {
            String type = switch (field.type()) {
                case "i32" -> "int32_t";
                case "u32" -> "uint32_t";
                default -> "uint64_t";
            };
            String unit = field.unit() == null ? "" : "_" + field.unit();
            out.append("    ").append(type).append(' ').append(field.name()).append(unit).append("; /* ")
                .append(field.doc()).append(" */\n");
        }
        out.append("} hws_record_header_t;\n\n");
        for (HeaderField field : record.header()) {
            String unit = field.unit() == null ? "" : "_" + field.unit();
            define(field.constantName(), Integer.toString(field.offset()), null);
            out.append("_Static_assert(offsetof(hws_record_header_t, ").append(field.name()).append(unit)
                .append(") == HWS_").append(field.constantName()).append(", \"\");\n");
        }
        out.append("_Static_assert(sizeof(hws_record_header_t) == 32, \"\");\n\n");
    }

    private void control(Control control) {
        String fields = control.fields().isEmpty() ? "no payload" : String.join(", ", control.fields());
        out.append("\n/* ").append(control.direction()).append(": ").append(fields).append(" */\n");
        define("CONTROL_" + control.name(), Integer.toString(control.number()), null);
        for (Field field : control.payload()) {
            define(control.name() + "_" + Names.upper(field.name()) + "_OFFSET", Integer.toString(field.offset()),
                field.type());
        }
        define(control.name() + "_FIXED_BYTES", Integer.toString(control.fixedBytes()), null);
    }

    private void number(String name, Constant constant) {
        boolean wide = constant.value() > Integer.MAX_VALUE;
        define(name, wide ? "0x" + Long.toHexString(constant.value()) + "u" : Long.toString(constant.value()),
            constant.doc());
    }

    private void define(String name, String value, String doc) {
        out.append("#define HWS_").append(name).append(' ').append(value);
        if (doc != null) {
            out.append(" /* ").append(doc).append(" */");
        }
        out.append('\n');
    }
}
