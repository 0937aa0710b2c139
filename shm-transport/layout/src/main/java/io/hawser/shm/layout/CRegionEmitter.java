package io.hawser.shm.layout;

import io.hawser.shm.layout.RegionDescription.Block;
import io.hawser.shm.layout.RegionDescription.Field;

/** Writes {@code hws_region.h}: a struct for each block, whose offsets the compiler checks, and the constants. */
final class CRegionEmitter {
    private final StringBuilder out = new StringBuilder();

    String emit(RegionDescription region) {
        out.append("/* Generated from region.yaml. The shared memory of one vGPU, little-endian. */\n"
            + "#ifndef HWS_REGION_H\n#define HWS_REGION_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n");
        define("REGION_VERSION", Integer.toString(region.regionVersion()), "version of this layout");
        region.constants().forEach(constant -> define(constant.name(), literal(constant.value()), constant.doc()));
        region.blocks().stream().filter(block -> !block.fields().isEmpty()).forEach(this::block);
        out.append("\n#endif\n");
        return out.toString();
    }

    private void block(Block block) {
        String type = "hws_region_" + Names.lower(block.name());
        out.append("\n/* ").append(block.doc()).append("; written by the ").append(block.writer())
            .append(" */\ntypedef struct ").append(type).append(" {\n");
        int at = 0;
        int gaps = 0;
        for (Field field : block.fields()) {
            if (field.offset() > at) {
                out.append("    uint8_t gap").append(gaps++).append('[').append(field.offset() - at).append("];\n");
            }
            out.append("    ").append(declaration(field)).append("; /* ").append(field.doc()).append(" */\n");
            at = field.offset() + field.sizeBytes();
        }
        out.append("} ").append(type).append("_t;\n");
        for (Field field : block.fields()) {
            out.append("_Static_assert(offsetof(").append(type).append("_t, ").append(Names.snake(field.name()))
                .append(") == ").append(field.offset()).append(", \"\");\n");
        }
        out.append("_Static_assert(sizeof(").append(type).append("_t) <= HWS_PAGE_BYTES, \"\");\n");
    }

    private static String declaration(Field field) {
        String name = Names.snake(field.name());
        return switch (field.type()) {
            case "u32" -> "uint32_t " + name;
            case "u64" -> "uint64_t " + name;
            default -> "char " + name + "[" + field.sizeBytes() + "]";
        };
    }

    private static String literal(long value) {
        if (value > 0xFFFFFFFFL) {
            return "0x" + Long.toHexString(value) + "ull";
        }
        return value > Integer.MAX_VALUE ? "0x" + Long.toHexString(value) + "u" : Long.toString(value);
    }

    private void define(String name, String value, String doc) {
        out.append("#define HWS_").append(name).append(' ').append(value).append(" /* ").append(doc).append(" */\n");
    }
}
