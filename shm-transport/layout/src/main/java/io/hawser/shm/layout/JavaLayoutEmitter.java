package io.hawser.shm.layout;

import io.hawser.shm.layout.RecordDescription.Constant;
import io.hawser.shm.layout.RecordDescription.Control;
import io.hawser.shm.layout.RecordDescription.Field;
import io.hawser.shm.layout.RecordDescription.HeaderField;
import java.util.stream.Collectors;

/** Writes {@code RecordLayout.java}: constants only, with the byte diagram in the Javadoc. */
final class JavaLayoutEmitter {
    private final StringBuilder out = new StringBuilder();

    String emit(RecordDescription record) {
        out.append("package io.hawser.shm.wire;\n\n");
        diagram(record);
        out.append("public final class RecordLayout {\n");
        constant("int", "PROTOCOL_VERSION", Integer.toString(record.protocolVersion()), "Version of the records.");
        for (HeaderField field : record.header()) {
            constant("int", field.constantName(), Integer.toString(field.offset()),
                sentence(field.type() + ": " + field.doc()));
        }
        for (Constant constant : record.constants()) {
            number(constant.name(), constant);
        }
        for (Constant refusal : record.refusals()) {
            number("REFUSED_" + refusal.name(), refusal);
        }
        for (Control control : record.controls()) {
            control(control);
        }
        out.append("    private RecordLayout() {\n    }\n}\n");
        return out.toString();
    }

    private void diagram(RecordDescription record) {
        out.append("/**\n * The record that every carrier transports, little-endian:\n *\n * <pre>\n");
        out.append(" *  offset  bytes  field\n");
        for (HeaderField field : record.header()) {
            out.append(String.format(" *  %6d  %5d  %-9s %s%n", field.offset(), field.sizeBytes(), field.name(),
                html(field.doc())));
        }
        out.append(" *      32         payload, padded to 8\n * </pre>\n *\n");
        out.append(" * <p>Offsets of header fields count from the start of the record, those of control records from\n"
            + " * the start of the payload; the offset of a buffer or string is that of its u32 length.\n */\n");
    }

    private void control(Control control) {
        String fields = control.fields().isEmpty() ? "no payload" : String.join(", ", control.fields());
        constant("int", "CONTROL_" + control.name(), Integer.toString(control.number()),
            "Opcode, " + html(control.direction()) + ": " + fields + ".");
        for (Field field : control.payload()) {
            constant("int", control.name() + "_" + Names.upper(field.name()) + "_OFFSET",
                Integer.toString(field.offset()), field.type() + " of " + control.name() + ".");
        }
        constant("int", control.name() + "_FIXED_BYTES", Integer.toString(control.fixedBytes()),
            "Fixed part of the payload of " + control.name() + ".");
    }

    private void number(String name, Constant constant) {
        boolean wide = constant.value() > Integer.MAX_VALUE;
        constant("int", name, wide ? "0x" + Long.toHexString(constant.value()) : Long.toString(constant.value()),
            sentence(constant.doc()));
    }

    private void constant(String type, String name, String value, String doc) {
        out.append("    /** ").append(doc).append(" */\n");
        out.append("    public static final ").append(type).append(' ').append(name).append(" = ").append(value)
            .append(";\n\n");
    }

    static String sentence(String text) {
        return html(Character.toUpperCase(text.charAt(0)) + text.substring(1)) + ".";
    }

    private static String html(String text) {
        return text.chars().mapToObj(c -> switch (c) {
            case '<' -> "&lt;";
            case '>' -> "&gt;";
            case '&' -> "&amp;";
            default -> Character.toString(c);
        }).collect(Collectors.joining());
    }
}
