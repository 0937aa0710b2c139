package io.hawser.shm.layout;

import io.hawser.shm.layout.RegionDescription.Block;
import io.hawser.shm.layout.RegionDescription.Field;

/** Writes {@code RegionLayout.java}: constants only. */
final class JavaRegionEmitter {
    private final StringBuilder out = new StringBuilder();

    String emit(RegionDescription region) {
        out.append("package io.hawser.shm.region;\n\n/**\n * The shared memory of one vGPU, little-endian. Offsets "
            + "count from the start of their block.\n */\npublic final class RegionLayout {\n");
        constant("int", "REGION_VERSION", Integer.toString(region.regionVersion()), "Version of this layout.");
        region.constants().forEach(constant -> {
            boolean wide = constant.value() > 0xFFFFFFFFL;
            constant(wide ? "long" : "int", constant.name(), constant.value() > Integer.MAX_VALUE
                ? "0x" + Long.toHexString(constant.value()) + (wide ? "L" : "") : Long.toString(constant.value()),
                JavaLayoutEmitter.sentence(constant.doc()));
        });
        for (Block block : region.blocks()) {
            for (Field field : block.fields()) {
                constant("int", block.name() + "_" + Names.upper(field.name()) + "_OFFSET",
                    Integer.toString(field.offset()), JavaLayoutEmitter.sentence(field.type() + " of the "
                        + block.writer() + ": " + field.doc()));
                if (field.type().startsWith("u8[")) {
                    constant("int", block.name() + "_" + Names.upper(field.name()) + "_BYTES",
                        Integer.toString(field.sizeBytes()), "Length of that field.");
                }
            }
        }
        out.append("    private RegionLayout() {\n    }\n}\n");
        return out.toString();
    }

    private void constant(String type, String name, String value, String doc) {
        out.append("    /** ").append(doc).append(" */\n    public static final ").append(type).append(' ').append(name)
            .append(" = ").append(value).append(";\n\n");
    }
}
