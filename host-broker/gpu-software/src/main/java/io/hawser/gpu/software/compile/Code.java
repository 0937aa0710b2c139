package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.PtxType;
import io.hawser.gpu.software.ptx.Variable;
import java.util.ArrayList;
import java.util.List;

/** A function or kernel after lowering: blocks, registers and the layout of its local memory. */
final class Code {
    final String name;
    final boolean kernel;
    final List<Block> blocks = new ArrayList<>();
    final List<VReg> registers = new ArrayList<>();
    /** JVM parameters after slot, thread and frame. */
    final List<VReg> parameters = new ArrayList<>();
    /** Type of the result, or null. */
    PtxType returns;
    int frameBytes;

    Code(String name, boolean kernel) {
        this.name = name;
        this.kernel = kernel;
    }

    Block block() {
        Block block = new Block(blocks.size());
        blocks.add(block);
        return block;
    }

    VReg register(String label, PtxType type) {
        VReg reg = new VReg(label, type, registers.size());
        registers.add(reg);
        return reg;
    }

    /** Allocates a variable's place in the frame; returns its offset. */
    int allocate(Variable variable) {
        long at = ((long) frameBytes + variable.alignment() - 1) / variable.alignment() * variable.alignment();
        long end = at + variable.bytes();
        if (end > Integer.MAX_VALUE / 2) {
            throw new Refusal("local memory over 1 GiB");
        }
        frameBytes = (int) (end + 3) / 4 * 4;
        return (int) at;
    }

    /** Decides the JVM type of each register. */
    void decideTypes() {
        List<Ins> copies = new ArrayList<>();
        for (Block block : blocks) {
            for (Ins ins : block.code) {
                if (ins.copyOf != null) {
                    copies.add(ins);
                }
            }
        }
        for (boolean again = true; again;) {
            again = false;
            for (Ins copy : copies) {
                VReg to = copy.defs.get(0);
                if (to.isUndecided() != copy.copyOf.isUndecided()) {
                    (to.isUndecided() ? to : copy.copyOf).adopt(to.isUndecided() ? copy.copyOf : to);
                    again = true;
                }
                again |= to.inheritComputed(copy.copyOf);
            }
        }
        registers.forEach(VReg::decide);
    }
}
