package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.PtxType;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Deque;
import java.util.List;

/**
 * Makes loops yield that may wait for other threads: those with an atomic or ordered access and without an instruction
 * that waits. After enough iterations, the thread lets the other threads run before it returns to the loop's head.
 * Otherwise a spin lock that a suspended thread of the same CTA holds would never become free.
 */
final class Spins {
    private Spins() {
    }

    static void insert(Code code) {
        List<List<Block>> predecessors = new ArrayList<>();
        for (int i = 0; i < code.blocks.size(); i++) {
            predecessors.add(new ArrayList<>());
        }
        for (Block block : code.blocks) {
            block.allSuccessors().forEach(s -> predecessors.get(s.id).add(block));
        }
        for (Block[] edge : Order.backEdges(code.blocks.get(0), code.blocks.size())) {
            BitSet body = body(edge[0], edge[1], predecessors);
            if (spins(code, body)) {
                giveWay(code, edge[0], edge[1]);
            }
        }
    }

    /** The blocks that reach the back-edge without passing the loop's head. */
    private static BitSet body(Block tail, Block head, List<List<Block>> predecessors) {
        BitSet body = new BitSet();
        body.set(head.id);
        Deque<Block> work = new ArrayDeque<>();
        work.add(tail);
        while (!work.isEmpty()) {
            Block block = work.poll();
            if (!body.get(block.id)) {
                body.set(block.id);
                // Blocks added after the predecessors were computed have none that matter here.
                if (block.id < predecessors.size()) {
                    work.addAll(predecessors.get(block.id));
                }
            }
        }
        return body;
    }

    private static boolean spins(Code code, BitSet body) {
        boolean found = false;
        for (int id = body.nextSetBit(0); id >= 0; id = body.nextSetBit(id + 1)) {
            Block block = code.blocks.get(id);
            found |= block.code.stream().anyMatch(i -> i.spins);
        }
        return found;
    }

    private static void giveWay(Code code, Block tail, Block head) {
        Block check = code.block();
        Block wait = code.block();
        VReg spun = code.register("spun", PtxType.PRED);
        check.code.add(new Ins(0).def(spun, PtxType.PRED).emits(g -> {
            g.slot();
            g.call("CtaSlot", "spun", "IC");
            g.pop(spun, PtxType.PRED);
        }));
        check.term = new Block.Term.Branch(spun, false, wait, head);
        wait.term = new Block.Term.Suspend(new Ins(0).emits(g -> {
            g.slot();
            g.thread();
            g.call("CtaSlot", "giveWay", "VCI");
        }), head);
        tail.term = switch (tail.term) {
            case Block.Term.Jump j -> new Block.Term.Jump(check);
            case Block.Term.Branch b -> new Block.Term.Branch(b.predicate(), b.negated(),
                b.yes() == head ? check : b.yes(), b.no() == head ? check : b.no());
            case Block.Term.Switch s -> new Block.Term.Switch(s.index(),
                s.targets().stream().map(t -> t == head ? check : t).toList());
            default -> tail.term;
        };
    }
}
