package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.PtxType;
import java.util.ArrayList;
import java.util.List;

/** A straight-line step: the registers that it reads and writes, and the generator of its bytecode. */
final class Ins {
    /** Generates the bytecode. */
    interface Body {
        void emit(Gen g);
    }

    final int line;
    final List<VReg> uses = new ArrayList<>();
    final List<VReg> defs = new ArrayList<>();
    /**
     * The source register when this copies between registers of one width, else null; it guides the choice of JVM
     * types.
     */
    VReg copyOf;
    VReg guard;
    boolean guardNegated;
    boolean needsShared;
    boolean needsLocal;
    /** An atomic or ordered access: a loop with one may wait for other threads. */
    boolean spins;
    /** A call of another function, whose length {@link Steps} cannot bound. */
    boolean calls;
    Body body;

    Ins(int line) {
        this.line = line;
    }

    Ins use(Src src, PtxType as) {
        if (src instanceof Src.R r) {
            uses.add(r.reg());
            r.reg().vote(as);
        }
        return this;
    }

    Ins def(VReg reg, PtxType as) {
        return def(reg, as, false, false);
    }

    Ins def(VReg reg, PtxType as, boolean flushed, boolean computed) {
        defs.add(reg);
        reg.addDefinition(as, flushed, computed);
        return this;
    }

    Ins emits(Body made) {
        body = made;
        return this;
    }

    Ins shared() {
        needsShared = true;
        return this;
    }

    Ins local() {
        needsLocal = true;
        return this;
    }

    /** Approximate size of the bytecode in bytes. */
    int weight() {
        return 8 + 4 * (uses.size() + defs.size());
    }
}
