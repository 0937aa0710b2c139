package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.PtxType;

/**
 * A virtual register of the code being translated: a PTX register, a scalar parameter or a temporary. Its JVM type
 * follows from its uses:
 * a 32-bit register that floating instructions use most becomes a float, so that chains of them need no moves of bits.
 */
final class VReg {
    final String name;
    final PtxType type;
    final int id;
    char jvm;
    private int integerVotes;
    private int floatVotes;
    // Definitions in all, those whose result was flushed, and those that computed a float.
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

    void defined(PtxType as, boolean isFlushed, boolean isComputed) {
        vote(as);
        definitions++;
        flushed += isFlushed ? 1 : 0;
        computed += isComputed ? 1 : 0;
    }

    boolean undecided() {
        return floatVotes == 0 && integerVotes == 0;
    }

    /** Copies between untyped registers carry the vote along. */
    void adopt(VReg other) {
        floatVotes += other.floatVotes;
        integerVotes += other.integerVotes;
    }

    /** A copy of computed floats is one too; true if that was news. */
    boolean inherits(VReg other) {
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

    /** Every value it gets has been flushed already. */
    boolean alwaysFlushed() {
        return definitions > 0 && definitions == flushed;
    }

    /** Some value it gets was computed as f32: a NaN in it is PTX's when its bits are looked at. */
    boolean computesFloats() {
        return computed > 0;
    }

    /** Words in JVM locals. */
    int width() {
        return jvm == 'J' || jvm == 'D' ? 2 : 1;
    }

    @Override
    public String toString() {
        return name;
    }
}
