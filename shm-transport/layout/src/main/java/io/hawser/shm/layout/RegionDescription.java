package io.hawser.shm.layout;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import java.io.IOException;
import java.io.InputStream;
import java.util.List;

/**
 * The contents of {@code region.yaml}. The reader refuses unknown keys.
 *
 * @param regionVersion version of the region's layout.
 * @param blocks groups of fields with their offsets.
 * @param constants numbers that both sides use.
 */
public record RegionDescription(int regionVersion, List<Block> blocks, List<RecordDescription.Constant> constants) {

    /** Fields that one side writes; {@code writer} is host, guest or both. */
    public record Block(String name, String writer, String doc, List<Field> fields) {
    }

    /** A field; {@code offset} in bytes from the start of its block. */
    public record Field(String name, String type, int offset, String doc) {
        /** Size in bytes. */
        public int sizeBytes() {
            return RecordDescription.Field.sizeOf(type);
        }
    }

    /**
     * Reads the description of this module and checks that no field overlaps another or is misaligned.
     *
     * @throws IOException if it is missing or malformed.
     */
    public static RegionDescription load() throws IOException {
        try (InputStream in = RegionDescription.class.getResourceAsStream("region.yaml")) {
            return new ObjectMapper(new YAMLFactory()).readValue(in, RegionDescription.class).checked();
        }
    }

    RegionDescription checked() {
        for (Block block : blocks) {
            int end = 0;
            for (Field field : block.fields()) {
                int alignment = field.type().startsWith("u8[") ? 8 : field.sizeBytes();
                if (field.offset() < end || field.offset() % alignment != 0) {
                    throw new IllegalArgumentException("a field must be aligned and behind the one before: block="
                        + block.name() + " field=" + field.name() + " offset=" + field.offset() + " end=" + end);
                }
                end = field.offset() + field.sizeBytes();
            }
        }
        return this;
    }
}
