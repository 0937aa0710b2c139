package io.hawser.gpu.software.ptx;

import java.util.List;

/**
 * A named piece of memory: a variable of a module or function, a parameter, or a call's parameter. Compared by
 * identity.
 */
public final class Variable {
    /** State spaces for variables. */
    public enum Space { GLOBAL, CONST, SHARED, LOCAL, PARAM }

    /** Linkage directive before a declaration. */
    public enum Linkage { NONE, VISIBLE, EXTERN, WEAK, COMMON }

    /**
     * An address inside initial bytes.
     *
     * @param offset  bytes from the variable's start.
     * @param bytes   how many bytes of the address are stored: 8, 4 or (masked) 1.
     * @param shift   bits by which the address is first shifted right, for masked single bytes.
     * @param symbol  name of a variable or function.
     * @param addend  added to its address.
     */
    public record Relocation(int offset, int bytes, int shift, String symbol, long addend) {}

    private final String name;
    private final Space space;
    private final PtxType type;
    private final long bytes;
    private final int alignment;
    private final boolean array;
    private final boolean unsized;
    private final Linkage linkage;
    private final boolean managed;
    private final byte[] initial;
    private final List<Relocation> relocations;

    Variable(Declaration from, long bytes, byte[] initial, List<Relocation> relocations) {
        this.name = from.name;
        this.space = from.space;
        this.type = from.type;
        this.bytes = bytes;
        this.alignment = Math.max(from.alignment, from.type.bytes() * from.vector);
        this.array = from.array || from.vector > 1;
        this.unsized = from.unsized;
        this.linkage = from.linkage;
        this.managed = from.managed;
        this.initial = initial;
        this.relocations = relocations;
    }

    /** The properties of a declaration before its size is known. */
    static final class Declaration {
        String name;
        Space space;
        PtxType type;
        int alignment = 1;
        int vector = 1;
        boolean array;
        boolean unsized;
        boolean managed;
        Linkage linkage = Linkage.NONE;
    }

    /** Name as in the text. */
    public String name() {
        return name;
    }

    /** State space. */
    public Space space() {
        return space;
    }

    /** Element type. */
    public PtxType type() {
        return type;
    }

    /** Size in bytes; 0 for an unsized external array. */
    public long bytes() {
        return bytes;
    }

    /** Alignment: a power of two, at least the element's size. */
    public int alignment() {
        return alignment;
    }

    /** Whether it is declared with brackets; accesses then use offsets. */
    public boolean array() {
        return array;
    }

    /** Whether it is declared with empty brackets: the dynamic shared memory of a launch. */
    public boolean unsized() {
        return unsized;
    }

    /** Linkage. */
    public Linkage linkage() {
        return linkage;
    }

    /** Whether it carries {@code .attribute(.managed)}. */
    public boolean managed() {
        return managed;
    }

    /** Initial bytes, at most {@link #bytes} of them, or null. */
    public byte[] initial() {
        return initial;
    }

    /** Addresses inside the initial bytes. */
    public List<Relocation> relocations() {
        return relocations;
    }

    @Override
    public String toString() {
        return name;
    }
}
