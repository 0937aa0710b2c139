package io.hawser.gpu.software.compile;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Bounds the steps of one thread of a kernel from its code. */
final class Steps {
    /** There is no bound: the code has a loop or a call. */
    static final int UNKNOWN = -1;

    private static final int UNSEEN = -2;
    private static final int OPEN = -3;

    private Steps() {
    }

    /** The steps on the longest path through lowered code; {@link #UNKNOWN} if the code has a loop or a call. */
    static int most(Code code) {
        int[] steps = new int[code.blocks.size()];
        Arrays.fill(steps, UNSEEN);
        List<Block> stack = new ArrayList<>(List.of(code.blocks.get(0)));
        while (!stack.isEmpty()) {
            Block block = stack.getLast();
            if (steps[block.id] >= 0) {
                stack.removeLast();
                continue;
            }
            boolean seen = steps[block.id] == OPEN;
            steps[block.id] = OPEN;
            int longest = 0;
            boolean complete = true;
            for (Block next : block.allSuccessors()) {
                if (steps[next.id] == OPEN && !seen) {
                    return UNKNOWN;
                }
                if (steps[next.id] < 0) {
                    stack.add(next);
                    complete = false;
                } else {
                    longest = Math.max(longest, steps[next.id]);
                }
            }
            if (complete) {
                if (block.code.stream().anyMatch(i -> i.calls)) {
                    return UNKNOWN;
                }
                steps[block.id] = longest + block.code.size() + 1;
                stack.removeLast();
            }
        }
        return steps[code.blocks.get(0).id];
    }
}
