package io.hawser.gpu.software.compile;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.function.Predicate;

/** Orders of blocks. */
final class Order {
    /** A visited block and the index of its next successor. */
    private static final class Visit {
        final Block block;
        final List<Block> successors;
        int next;

        Visit(Block block, List<Block> successors) {
            this.block = block;
            this.successors = successors;
        }
    }

    private Order() {
    }

    /**
     * The blocks that a block reaches without waiting, in reverse postorder. The traversal follows an edge if the
     * predicate accepts the edge's end.
     */
    static List<Block> reversePostorder(Block from, Predicate<Block> enter) {
        List<Block> order = new ArrayList<>();
        BitSet seen = new BitSet();
        List<Visit> stack = new ArrayList<>();
        stack.add(new Visit(from, from.successors()));
        seen.set(from.id);
        while (!stack.isEmpty()) {
            Visit top = stack.getLast();
            // Visits the last successor first: the first successor then directly follows its block in the result.
            if (top.next < top.successors.size()) {
                Block next = top.successors.get(top.successors.size() - 1 - top.next++);
                if (!seen.get(next.id) && enter.test(next)) {
                    seen.set(next.id);
                    stack.add(new Visit(next, next.successors()));
                }
            } else {
                order.add(top.block);
                stack.removeLast();
            }
        }
        Collections.reverse(order);
        return order;
    }

    /** Edges that close a loop without a wait, as {tail, head}. */
    static List<Block[]> backEdges(Block entry, int blocks) {
        List<Block[]> result = new ArrayList<>();
        BitSet seen = new BitSet(blocks);
        BitSet open = new BitSet(blocks);
        List<Block> entries = new ArrayList<>(List.of(entry));
        for (int i = 0; i < entries.size(); i++) {
            if (seen.get(entries.get(i).id)) {
                continue;
            }
            List<Visit> stack = new ArrayList<>();
            push(stack, entries.get(i), seen, open, entries);
            while (!stack.isEmpty()) {
                Visit top = stack.getLast();
                if (top.next < top.successors.size()) {
                    Block next = top.successors.get(top.next++);
                    if (open.get(next.id)) {
                        result.add(new Block[] {top.block, next});
                    } else if (!seen.get(next.id)) {
                        push(stack, next, seen, open, entries);
                    }
                } else {
                    open.clear(top.block.id);
                    stack.removeLast();
                }
            }
        }
        return result;
    }

    private static void push(List<Visit> stack, Block block, BitSet seen, BitSet open, List<Block> entries) {
        seen.set(block.id);
        open.set(block.id);
        stack.add(new Visit(block, block.successors()));
        if (block.term instanceof Block.Term.Suspend s) {
            entries.add(s.next());
        }
    }
}
