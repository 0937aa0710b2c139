package io.hawser.gpu.software.exec;

/** The channel formats of texels. */
public enum TexelFormat {
    /** Unsigned, 8 bits. */
    U8(1),
    /** Signed, 8 bits. */
    S8(1),
    /** Unsigned, 16 bits. */
    U16(2),
    /** Signed, 16 bits. */
    S16(2),
    /** Unsigned, 32 bits. */
    U32(4),
    /** Signed, 32 bits. */
    S32(4),
    /** Floating, 16 bits. */
    F16(2),
    /** Floating, 32 bits. */
    F32(4);

    private final int bytes;

    TexelFormat(int bytes) {
        this.bytes = bytes;
    }

    /** Bytes of a channel. */
    public int bytes() {
        return bytes;
    }

    /** Whether a fetch returns floats without normalisation. */
    public boolean isFloating() {
        return this == F16 || this == F32;
    }

    /** Whether the integers have 32 bits, which no fetch normalises. */
    public boolean isWide() {
        return this == U32 || this == S32;
    }

    /** The lowest fraction of a normalised integer. */
    float leastFraction() {
        return this == S8 || this == S16 ? -1 : 0;
    }

    /** The channel at an address that {@link Mem#check} has accepted, as an integer widened by its sign. */
    int integer(long address) {
        return switch (this) {
            case U8 -> RawMem.ldU8(address);
            case S8 -> RawMem.ldS8(address);
            case U16 -> RawMem.ldU16(address);
            case S16 -> RawMem.ldS16(address);
            default -> RawMem.ld32(address);
        };
    }

    /** The channel at such an address as a float: an integer becomes a fraction of its largest value. */
    float fraction(long address) {
        return switch (this) {
            case U8 -> RawMem.ldU8(address) / 255f;
            case S8 -> Math.max(RawMem.ldS8(address) / 127f, -1f);
            case U16 -> RawMem.ldU16(address) / 65535f;
            case S16 -> Math.max(RawMem.ldS16(address) / 32767f, -1f);
            case F16 -> HalfMath.f16(RawMem.ldU16(address));
            case F32 -> RawMem.ldF32(address);
            default -> throw new AssertionError("integers of 32 bits are never normalised");
        };
    }
}
