package io.hawser.gpu.software.compile;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Deque;
import java.util.List;

/** Which registers are needed at the start of each block. */
final class Liveness {
    private final BitSet[] liveIn;

    Liveness(Code code) {
        int count = code.blocks.size();
        liveIn = new BitSet[count];
        BitSet[] uses = new BitSet[count];
        BitSet[] kills = new BitSet[count];
        List<List<Block>> predecessors = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            predecessors.add(new ArrayList<>());
            liveIn[i] = new BitSet();
        }
        Deque<Block> work = new ArrayDeque<>();
        for (Block block : code.blocks) {
            uses[block.id] = new BitSet();
            kills[block.id] = new BitSet();
            for (Ins ins : block.code) {
                read(ins.uses, uses[block.id], kills[block.id]);
                ins.defs.forEach(r -> kills[block.id].set(r.id));
            }
            read(block.termUses(), uses[block.id], kills[block.id]);
            block.allSuccessors().forEach(s -> predecessors.get(s.id).add(block));
            work.addFirst(block);
        }
        boolean[] queued = new boolean[count];
        java.util.Arrays.fill(queued, true);
        while (!work.isEmpty()) {
            Block block = work.poll();
            queued[block.id] = false;
            BitSet live = new BitSet();
            block.allSuccessors().forEach(s -> live.or(liveIn[s.id]));
            live.andNot(kills[block.id]);
            live.or(uses[block.id]);
            if (!live.equals(liveIn[block.id])) {
                liveIn[block.id] = live;
                for (Block p : predecessors.get(block.id)) {
                    if (!queued[p.id]) {
                        queued[p.id] = true;
                        work.add(p);
                    }
                }
            }
        }
    }

    private static void read(List<VReg> registers, BitSet uses, BitSet kills) {
        for (VReg register : registers) {
            if (!kills.get(register.id)) {
                uses.set(register.id);
            }
        }
    }

    /** Registers that are live at a block's start. Read-only for callers. */
    BitSet in(Block block) {
        return liveIn[block.id];
    }
}
