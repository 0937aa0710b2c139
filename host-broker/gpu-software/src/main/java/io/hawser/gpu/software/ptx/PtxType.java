package io.hawser.gpu.software.ptx;

import java.util.HashMap;
import java.util.Map;

/** The fundamental types of PTX, each with the JVM type that carries its values. */
public enum PtxType {
    PRED(1, 'I', false),
    B8(8, 'I', false),
    U8(8, 'I', false),
    S8(8, 'I', true),
    B16(16, 'I', false),
    U16(16, 'I', false),
    S16(16, 'I', true),
    F16(16, 'I', false),
    BF16(16, 'I', false),
    B32(32, 'I', false),
    U32(32, 'I', false),
    S32(32, 'I', true),
    F32(32, 'F', false),
    F16X2(32, 'I', false),
    BF16X2(32, 'I', false),
    U16X2(32, 'I', false),
    S16X2(32, 'I', false),
    TF32(32, 'I', false),
    B64(64, 'J', false),
    U64(64, 'J', false),
    S64(64, 'J', true),
    F64(64, 'D', false),
    F32X2(64, 'J', false),
    B128(128, 'J', false);

    private static final Map<String, PtxType> BY_NAME = new HashMap<>();

    static {
        for (PtxType type : values()) {
            BY_NAME.put(type.ptxName(), type);
        }
    }

    private final int bits;
    private final char jvm;
    private final boolean signed;

    PtxType(int bits, char jvm, boolean signed) {
        this.bits = bits;
        this.jvm = jvm;
        this.signed = signed;
    }

    /** The type of a dot word such as {@code u32}, or null when the word is not a type. */
    public static PtxType byName(String word) {
        return BY_NAME.get(word);
    }

    /** Name in PTX, without the dot. */
    public String ptxName() {
        return name().toLowerCase(java.util.Locale.ROOT);
    }

    /** Width in bits; 1 for a predicate. */
    public int bits() {
        return bits;
    }

    /** Size in memory in bytes. */
    public int bytes() {
        return Math.max(1, bits / 8);
    }

    /** JVM computational type: I, J, F or D. */
    public char jvm() {
        return jvm;
    }

    /** Whether narrow values are widened by their sign. */
    public boolean signed() {
        return signed;
    }

    /** Whether it is an untyped bit string, which any operation may use. */
    public boolean untyped() {
        return this == B8 || this == B16 || this == B32 || this == B64;
    }

    /** Whether the JVM type is float or double. */
    public boolean floating() {
        return jvm == 'F' || jvm == 'D';
    }
}
