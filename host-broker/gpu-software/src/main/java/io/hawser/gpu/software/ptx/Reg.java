package io.hawser.gpu.software.ptx;

/** A virtual register. Compared by identity: registers of inner scopes may have the same name. */
public final class Reg {
    private final String name;
    private final PtxType type;

    /** Creates a register. */
    public Reg(String name, PtxType type) {
        this.name = name;
        this.type = type;
    }

    /** Name as declared, with its percent sign. */
    public String name() {
        return name;
    }

    /** Declared type. */
    public PtxType type() {
        return type;
    }

    @Override
    public String toString() {
        return name;
    }
}
