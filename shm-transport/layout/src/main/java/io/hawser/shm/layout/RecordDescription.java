package io.hawser.shm.layout;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;

/**
 * The contents of {@code record.yaml}. The reader refuses unknown keys, so that a typing error is not ignored.
 *
 * @param protocolVersion version of the records: WELCOME and regions carry it.
 * @param header fields of the record's header.
 * @param constants numbers that both sides use.
 * @param controls records of library 0.
 * @param refusals codes of REFUSED.
 */
public record RecordDescription(int protocolVersion, List<HeaderField> header, List<Constant> constants,
    List<Control> controls, List<Constant> refusals) {

    /** A field of the header; {@code offset} in bytes from the start of the record. */
    public record HeaderField(String name, String type, int offset, String unit, String doc) {
        /** Name of the constant, for example {@code LENGTH_OFFSET}. */
        public String constantName() {
            return Names.upper(name) + "_OFFSET";
        }

        /** Size in bytes. */
        public int sizeBytes() {
            return Field.sizeOf(type);
        }
    }

    /** A number with a name. */
    public record Constant(String name, long value, String doc) {
    }

    /** A control record; {@code fields} reads {@code TYPE NAME}. */
    public record Control(int number, String name, String direction, List<String> fields, List<String> reply) {
        /** The payload's fields with their offsets. */
        public List<Field> payload() {
            return Field.layout(fields);
        }

        /** Length in bytes of the payload's fixed part, padded to 8. */
        public int fixedBytes() {
            return Field.fixedBytes(payload());
        }
    }

    /**
     * A field of a control record's payload.
     *
     * @param offset offset in bytes from the start of the payload; for a buffer, the offset of its u32 length.
     */
    public record Field(String type, String name, int offset) {
        static List<Field> layout(List<String> texts) {
            List<Field> fields = new ArrayList<>();
            int at = 0;
            for (String text : texts) {
                String[] words = text.split(" ");
                int alignment = words[0].startsWith("u8[") ? 1 : sizeOf(words[0]);
                at = align(at, alignment);
                fields.add(new Field(words[0], words[1], at));
                at += sizeOf(words[0]);
            }
            return fields;
        }

        static int fixedBytes(List<Field> fields) {
            if (fields.isEmpty()) {
                return 0;
            }
            Field last = fields.getLast();
            return align(last.offset + sizeOf(last.type), 8);
        }

        static int sizeOf(String type) {
            return switch (type) {
                case "i32", "u32", "string", "buffer" -> 4;
                case "u64" -> 8;
                default -> {
                    if (!type.matches("u8\\[\\d+]")) {
                        throw new IllegalArgumentException(
                            "a type must be i32, u32, u64, u8[N], string or buffer: type=" + type);
                    }
                    yield Integer.parseInt(type.substring(3, type.length() - 1));
                }
            };
        }

        private static int align(int at, int alignment) {
            return (at + alignment - 1) / alignment * alignment;
        }
    }

    /**
     * Reads the description of this module.
     *
     * @throws IOException if it is missing or malformed.
     */
    public static RecordDescription load() throws IOException {
        try (InputStream in = RecordDescription.class.getResourceAsStream("record.yaml")) {
            return new ObjectMapper(new YAMLFactory()).readValue(in, RecordDescription.class);
        }
    }
}
