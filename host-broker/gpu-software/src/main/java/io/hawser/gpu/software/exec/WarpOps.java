package io.hawser.gpu.software.exec;

import java.util.EnumSet;
import java.util.Set;

/** Resolves warp operations when all lanes of a member mask have arrived. Exited lanes count as arrived. */
final class WarpOps {
    private static final Set<Op> SHUFFLES = EnumSet.of(Op.SHFL_UP, Op.SHFL_DOWN, Op.SHFL_BFLY, Op.SHFL_IDX);
    /** Operations that permit a mask without the calling lane. */
    private static final Set<Op> UNMASKED = EnumSet.of(Op.SYNCWARP, Op.SHFL_UP, Op.SHFL_DOWN, Op.SHFL_BFLY,
        Op.SHFL_IDX);

    private WarpOps() {
    }

    /** Resolves the ready operations of threads from..to-1 (one warp); returns whether any thread became runnable. */
    static boolean resolve(CtaSlot c, int from, int to) {
        int waiting = 0;
        int exited = to - from == 32 ? 0 : -1 << to - from;
        for (int t = from; t < to; t++) {
            int next = c.next[t];
            if (next == CtaSlot.EXITED) {
                exited |= 1 << t - from;
            } else if (next < 0 && c.op[t] >= 2) {
                waiting |= 1 << t - from;
            }
        }
        int ready = ready(c, from, waiting, exited);
        if (ready == 0) {
            return waiting != 0 && resolveActive(c, from, waiting);
        }
        for (int left = ready; left != 0;) {
            int lane = Integer.numberOfTrailingZeros(left);
            Op op = Op.ALL[c.op[from + lane]];
            int together;
            if (SHUFFLES.contains(op)) {
                together = samePlace(c, from, ready, from + lane);
                shuffle(c, from, together, exited, op);
            } else {
                together = (c.mask[from + lane] | 1 << lane) & ~exited;
                apply(c, from, together, op);
            }
            left &= ~together;
        }
        wake(c, from, ready);
        return true;
    }

    /** The lanes whose masks have arrived completely; excludes lanes that wait for an activemask. */
    private static int ready(CtaSlot c, int from, int waiting, int exited) {
        int ready = 0;
        for (int left = waiting; left != 0;) {
            int lane = Integer.numberOfTrailingZeros(left);
            int t = from + lane;
            left &= ~(1 << lane);
            if (c.op[t] == Op.ACTIVEMASK.ordinal()) {
                continue;
            }
            boolean outside = (c.mask[t] & 1 << lane) == 0;
            if (outside && !UNMASKED.contains(Op.ALL[c.op[t]])) {
                c.running = t;
                // An H200 faults as well: PTX defines no result for this.
                throw new DeviceFault(DeviceFault.ILLEGAL_INSTRUCTION, "mask of " + Op.ALL[c.op[t]]
                    + " must name its caller: mask=0x" + Integer.toHexString(c.mask[t]) + " lane=" + lane);
            }
            int members = (c.mask[t] | 1 << lane) & ~exited;
            int present = sameOperation(c, from, waiting & members, t);
            if (present == members) {
                ready |= members;
            }
            // Lanes with one mask wait for the same lanes, except for a caller outside its own mask.
            left &= outside ? -1 : ~present;
        }
        return ready;
    }

    private static int samePlace(CtaSlot c, int from, int lanes, int t) {
        int result = 0;
        for (int left = lanes; left != 0; left &= left - 1) {
            if (c.next[from + Integer.numberOfTrailingZeros(left)] == c.next[t]) {
                result |= left & -left;
            }
        }
        return result;
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

    // The lanes of a warp that run together are those that wait at one place when no other lane can continue.
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
            case SYNCWARP -> {}
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

    /** A lane reads lanes of its mask and, as on the H200, any other lane that is at the same instruction now. */
    private static void shuffle(CtaSlot c, int from, int lanes, int exited, Op op) {
        for (int left = lanes; left != 0; left &= left - 1) {
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
            // A lane whose source is outside its segment keeps its own value. PTX does not define the value of an
            // absent lane; the H200 returns 0.
            int readable = lanes | c.mask[t] & ~exited;
            c.result[t] = !inside ? c.argA[t] : (readable >>> source & 1) != 0 ? c.argA[from + source] : 0;
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
