package io.hawser.gpu.software.exec;

/** Resolves warp operations once all lanes of a member mask have arrived. Exited lanes are not waited for. */
final class WarpOps {
    private WarpOps() {
    }

    /** Resolves what can be resolved among threads from..to-1 (one warp); true if any thread became runnable. */
    static boolean resolve(CtaSlot c, int from, int to) {
        int waiting = 0;
        int exited = to - from == 32 ? 0 : -1 << to - from;
        boolean runnable = false;
        for (int t = from; t < to; t++) {
            int next = c.next[t];
            if (next == CtaSlot.EXITED) {
                exited |= 1 << t - from;
            } else if (next < 0 && c.op[t] >= 2) {
                waiting |= 1 << t - from;
            }
        }
        int left = waiting;
        while (left != 0) {
            int lane = Integer.numberOfTrailingZeros(left);
            int t = from + lane;
            if (c.op[t] == Op.ACTIVEMASK.ordinal()) {
                left &= ~(1 << lane);
                continue;
            }
            int members = (c.mask[t] | 1 << lane) & ~exited;
            int present = sameOperation(c, from, waiting & members, t);
            if (present == members) {
                apply(c, from, members, Op.ALL[c.op[t]]);
                wake(c, from, members);
                waiting &= ~members;
                runnable = true;
            }
            left &= ~(present | 1 << lane);
        }
        return runnable || waiting != 0 && resolveActive(c, from, waiting);
    }

    private static int sameOperation(CtaSlot c, int from, int candidates, int t) {
        int result = 0;
        for (int left = candidates; left != 0; left &= left - 1) {
            int other = from + Integer.numberOfTrailingZeros(left);
            if (c.op[other] == c.op[t] && c.mask[other] == c.mask[t]) {
                result |= left & -left;
            }
        }
        return result;
    }

    // The lanes that run together are those that wait at one place when nothing else of the warp can go on.
    private static boolean resolveActive(CtaSlot c, int from, int waiting) {
        boolean any = false;
        int left = waiting;
        while (left != 0) {
            int t = from + Integer.numberOfTrailingZeros(left);
            int together = 0;
            for (int others = left; others != 0; others &= others - 1) {
                int other = from + Integer.numberOfTrailingZeros(others);
                if (c.next[other] == c.next[t]) {
                    together |= others & -others;
                }
            }
            left &= ~together;
            if (c.op[t] == Op.ACTIVEMASK.ordinal()) {
                for (int others = together; others != 0; others &= others - 1) {
                    c.result[from + Integer.numberOfTrailingZeros(others)] = together;
                }
                wake(c, from, together);
                any = true;
            }
        }
        return any;
    }

    private static void wake(CtaSlot c, int from, int members) {
        for (int left = members; left != 0; left &= left - 1) {
            int t = from + Integer.numberOfTrailingZeros(left);
            c.next[t] = ~c.next[t];
        }
    }

    private static void apply(CtaSlot c, int from, int members, Op op) {
        switch (op) {
            case SYNCWARP -> { }
            case SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX -> shuffle(c, from, members, op);
            case VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT -> vote(c, from, members, op);
            case MATCH_ANY, MATCH_ALL -> match(c, from, members, op);
            case ELECT -> {
                int leader = Integer.numberOfTrailingZeros(members);
                for (int left = members; left != 0; left &= left - 1) {
                    int lane = Integer.numberOfTrailingZeros(left);
                    c.result[from + lane] = leader;
                    c.resultPredicate[from + lane] = lane == leader ? 1 : 0;
                }
            }
            default -> reduce(c, from, members, op);
        }
    }

    private static void shuffle(CtaSlot c, int from, int members, Op op) {
        for (int left = members; left != 0; left &= left - 1) {
            int lane = Integer.numberOfTrailingZeros(left);
            int t = from + lane;
            int delta = c.argB[t] & 31;
            int segment = c.argC[t] >>> 8 & 31;
            int least = lane & segment;
            int most = least | c.argC[t] & 31 & ~segment;
            int source = switch (op) {
                case SHFL_UP -> lane - delta;
                case SHFL_DOWN -> lane + delta;
                case SHFL_BFLY -> lane ^ delta;
                default -> least | delta & ~segment;
            };
            boolean inside = op == Op.SHFL_UP ? source >= most : source <= most;
            // A lane outside of the mask has no defined value: the own one is as good and leaks nothing.
            boolean readable = inside && (members >>> source & 1) != 0;
            c.result[t] = c.argA[readable ? from + source : t];
            c.resultPredicate[t] = inside ? 1 : 0;
        }
    }

    private static void vote(CtaSlot c, int from, int members, Op op) {
        int ballot = 0;
        for (int left = members; left != 0; left &= left - 1) {
            if (c.argA[from + Integer.numberOfTrailingZeros(left)] != 0) {
                ballot |= left & -left;
            }
        }
        int predicate = switch (op) {
            case VOTE_ALL -> ballot == members ? 1 : 0;
            case VOTE_ANY -> ballot != 0 ? 1 : 0;
            default -> ballot == members || ballot == 0 ? 1 : 0;
        };
        for (int left = members; left != 0; left &= left - 1) {
            int t = from + Integer.numberOfTrailingZeros(left);
            c.result[t] = ballot;
            c.resultPredicate[t] = predicate;
        }
    }

    private static void match(CtaSlot c, int from, int members, Op op) {
        for (int left = members; left != 0; left &= left - 1) {
            int t = from + Integer.numberOfTrailingZeros(left);
            int same = 0;
            for (int others = members; others != 0; others &= others - 1) {
                int other = from + Integer.numberOfTrailingZeros(others);
                if (c.argA[other] == c.argA[t] && c.argB[other] == c.argB[t]) {
                    same |= others & -others;
                }
            }
            boolean all = same == members;
            c.result[t] = op == Op.MATCH_ANY || all ? same : 0;
            c.resultPredicate[t] = all ? 1 : 0;
        }
    }

    private static void reduce(CtaSlot c, int from, int members, Op op) {
        int sum = c.argA[from + Integer.numberOfTrailingZeros(members)];
        for (int left = members & members - 1; left != 0; left &= left - 1) {
            int b = c.argA[from + Integer.numberOfTrailingZeros(left)];
            sum = switch (op) {
                case REDUX_ADD -> sum + b;
                case REDUX_MIN_S -> Math.min(sum, b);
                case REDUX_MIN_U -> IntMath.minU32(sum, b);
                case REDUX_MAX_S -> Math.max(sum, b);
                case REDUX_MAX_U -> IntMath.maxU32(sum, b);
                case REDUX_AND -> sum & b;
                case REDUX_OR -> sum | b;
                case REDUX_XOR -> sum ^ b;
                default -> throw new AssertionError(op);
            };
        }
        for (int left = members; left != 0; left &= left - 1) {
            c.result[from + Integer.numberOfTrailingZeros(left)] = sum;
        }
    }
}
