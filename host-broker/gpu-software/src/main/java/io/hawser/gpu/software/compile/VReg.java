package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.PtxType;

/**
 * A virtual register of the code being translated: a PTX register, a scalar parameter or a temporary. Its uses decide
 * its JVM type: a 32-bit register that mostly floating instructions use becomes a float, so that chains of them need no
 * moves of bits.
 */
final class VReg {
    final String name;
    final PtxType type;
    final int id;
    char jvm;
    private int integerVotes;
    private int floatVotes;
    // Counts of all definitions, of those with a flushed result, and of those that computed a float.
    private int definitions;
    private int flushed;
    private int computed;
    /** Slot among the ints or longs that live across suspensions, or -1. */
    int savedSlot = -1;

    VReg(String name, PtxType type, int id) {
        this.name = name;
        this.type = type;
        this.id = id;
        this.jvm = type.jvm();
    }

    int bits() {
        return type.bits();
    }

    void vote(PtxType as) {
        if (as.floating()) {
            floatVotes++;
        } else if (!as.untyped()) {
            integerVotes++;
        }
    }

    void addDefinition(PtxType as, boolean isFlushed, boolean isComputed) {
        vote(as);
        definitions++;
        flushed += isFlushed ? 1 : 0;
        computed += isComputed ? 1 : 0;
    }

    boolean isUndecided() {
        return floatVotes == 0 && integerVotes == 0;
    }

    /** Copies between untyped registers pass the vote on. */
    void adopt(VReg other) {
        floatVotes += other.floatVotes;
        integerVotes += other.integerVotes;
    }

    /** Marks a copy of computed floats as computed; returns whether that changed anything. */
    boolean inheritComputed(VReg other) {
        if (other.computed > 0 && computed == 0) {
            computed = 1;
            return true;
        }
        return false;
    }

    void decide() {
        if (type.floating() || type.bits() < 32) {
            return;
        }
        boolean floating = floatVotes > integerVotes;
        jvm = type.bits() == 32 ? floating ? 'F' : 'I' : floating ? 'D' : 'J';
    }

    /** Whether every value assigned to it has been flushed. */
    boolean alwaysFlushed() {
        return definitions > 0 && definitions == flushed;
    }

    /** Whether some value assigned to it was computed as f32: reading its bits must give PTX's NaN. */
    boolean computesFloats() {
        return computed > 0;
    }

    /** Size in JVM local variables. */
    int width() {
        return jvm == 'J' || jvm == 'D' ? 2 : 1;
    }

    @Override
    public String toString() {
        return name;
    }
}
