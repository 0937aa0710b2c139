package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.exec.Op;
import io.hawser.gpu.software.ptx.Operand;
import io.hawser.gpu.software.ptx.PtxException;
import io.hawser.gpu.software.ptx.PtxType;
import io.hawser.gpu.software.ptx.Statement;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Lowers barriers, warp operations and fences. */
final class SyncRules {
    /** Opcodes at which a thread waits for others; a function with one of them is expanded at its calls. */
    static final Set<String> WAITING = Set.of("bar", "barrier", "shfl", "vote", "match", "redux", "activemask",
        "elect");

    private static final Map<String, Op> SHUFFLES = Map.of("up", Op.SHFL_UP, "down", Op.SHFL_DOWN, "bfly", Op.SHFL_BFLY,
        "idx", Op.SHFL_IDX);
    private static final Map<String, Op> VOTES = Map.of("all", Op.VOTE_ALL, "any", Op.VOTE_ANY, "uni", Op.VOTE_UNI);
    private static final Map<String, Op> REDUCTIONS = Map.of("add.s32", Op.REDUX_ADD, "add.u32", Op.REDUX_ADD,
        "min.s32", Op.REDUX_MIN_S, "min.u32", Op.REDUX_MIN_U, "max.s32", Op.REDUX_MAX_S, "max.u32", Op.REDUX_MAX_U,
        "and.b32", Op.REDUX_AND, "or.b32", Op.REDUX_OR, "xor.b32", Op.REDUX_XOR);

    private SyncRules() {
    }

    static void register(Map<String, Lowering.Rule> rules) {
        rules.put("bar", SyncRules::bar);
        rules.put("barrier", SyncRules::bar);
        rules.put("shfl", SyncRules::shfl);
        rules.put("vote", SyncRules::vote);
        rules.put("match", SyncRules::match);
        rules.put("redux", SyncRules::redux);
        rules.put("activemask", SyncRules::activemask);
        rules.put("elect", SyncRules::elect);
        rules.put("membar", SyncRules::fence);
        rules.put("fence", SyncRules::fence);
        rules.put("nanosleep", SyncRules::nanosleep);
        rules.put("pmevent", (l, i) -> {});
        rules.put("griddepcontrol", (l, i) -> {});
    }

    private static void bar(Lowering l, Statement.Instruction i) throws PtxException {
        List<String> words = new ArrayList<>(i.modifiers());
        words.remove("cta");
        words.remove("aligned");
        if (words.equals(List.of("warp", "sync"))) {
            l.operands(i, 1, 1);
            warp(l, i, Op.SYNCWARP, i.operands().get(0), List.of(), null, null);
            return;
        }
        if (words.equals(List.of("sync"))) {
            l.operands(i, 1, 2);
            barrier(l, i, 0, Src.of(1), null, null);
        } else if (words.equals(List.of("arrive"))) {
            l.operands(i, 2, 2);
            Src barrier = l.source(i.operands().get(0), PtxType.U32);
            Src count = l.source(i.operands().get(1), PtxType.U32);
            l.add(i, l.ins(i).use(barrier, PtxType.U32).use(count, PtxType.U32).emits(g -> {
                g.slot();
                g.push(barrier, PtxType.U32);
                g.push(count, PtxType.U32);
                g.call("CtaSlot", "arrive", "VCII");
            }));
        } else if (words.size() == 3 && words.get(0).equals("red")) {
            l.operands(i, 3, 4);
            boolean population = words.get(1).equals("popc");
            PtxType type = population ? PtxType.U32 : PtxType.PRED;
            if (!words.get(2).equals(type.ptxName()) || !population && !Set.of("and", "or").contains(words.get(1))) {
                throw l.unsupported(i);
            }
            Src predicate = l.source(i.operands().getLast(), PtxType.PRED);
            barrier(l, i, 1, predicate, words.get(1), type);
        } else {
            throw l.unsupported(i);
        }
    }

    private static void barrier(Lowering l, Statement.Instruction i, int first, Src predicate, String reduction,
        PtxType type) throws PtxException {
        Src barrier = l.source(i.operands().get(first), PtxType.U32);
        boolean counted = i.operands().size() - first - (reduction == null ? 0 : 1) == 2;
        Src count = counted ? l.source(i.operands().get(first + 1), PtxType.U32) : Src.of(0);
        VReg target = reduction == null ? null : l.target(i.operands().get(0), type);
        Block after = l.guarded(i.guard());
        Ins op = new Ins(i.line()).use(barrier, PtxType.U32).use(count, PtxType.U32).use(predicate, PtxType.PRED);
        l.suspend(op.emits(g -> {
            g.slot();
            g.thread();
            g.push(barrier, PtxType.U32);
            g.push(count, PtxType.U32);
            g.push(predicate, PtxType.PRED);
            g.call("CtaSlot", "barrier", "VCIIII");
        }));
        if (target != null) {
            l.add(new Ins(i.line()).def(target, type).emits(g -> {
                g.ints(reduction.equals("and") ? "resultPredicate" : "result");
                g.thread();
                g.cb.iaload();
                if (reduction.equals("or")) {
                    // The barrier gives the number of true predicates; "or" needs at least one.
                    g.call("Builtins", "nonZero", "II");
                }
                g.pop(target, type);
            }));
        }
        rejoin(l, after);
    }

    private static void rejoin(Lowering l, Block after) {
        if (after != null) {
            l.jump(after);
            l.start(after);
        }
    }

    /** A warp operation: 32-bit arguments, a 32-bit result and a predicate. Result and predicate may be null. */
    private static void warp(Lowering l, Statement.Instruction i, Op code, Operand mask, List<Src> args, VReg result,
        VReg predicate) throws PtxException {
        Src members = mask == null ? Src.of(-1) : l.source(mask, PtxType.U32);
        warp(l, i, code, members, args, PtxType.U32, result, predicate);
    }

    private static void warp(Lowering l, Statement.Instruction i, Op code, Src members, List<Src> args, PtxType argType,
        VReg result, VReg predicate) {
        Block after = l.guarded(i.guard());
        Ins op = new Ins(i.line()).use(members, PtxType.U32);
        for (Src arg : args) {
            op.use(arg, argType == PtxType.U64 ? PtxType.U64 : PtxType.B32);
        }
        l.suspend(op.emits(g -> {
            g.slot();
            g.thread();
            g.push(code.ordinal());
            g.push(members, PtxType.U32);
            for (int k = 0; k < 3; k++) {
                if (argType == PtxType.U64 && k < 2) {
                    // A 64-bit value occupies the first two arguments.
                    g.push(args.get(0), PtxType.U64);
                    if (k == 1) {
                        g.push(32);
                        g.cb.lushr();
                    }
                    g.cb.l2i();
                } else if (argType != PtxType.U64 && k < args.size()) {
                    g.push(args.get(k), argType == PtxType.PRED ? PtxType.PRED : PtxType.U32);
                } else {
                    g.push(0);
                }
            }
            g.call("CtaSlot", "suspend", "VCIIIIII");
        }));
        if (result != null) {
            take(l, i, "result", result, PtxType.B32);
        }
        if (predicate != null) {
            take(l, i, "resultPredicate", predicate, PtxType.PRED);
        }
        rejoin(l, after);
    }

    private static void take(Lowering l, Statement.Instruction i, String field, VReg target, PtxType type) {
        l.add(new Ins(i.line()).def(target, type).emits(g -> {
            g.ints(field);
            g.thread();
            g.cb.iaload();
            g.pop(target, type);
        }));
    }

    private static VReg[] pair(Lowering l, Operand operand) throws PtxException {
        if (operand instanceof Operand.Pair pair) {
            return new VReg[] {l.target(pair.first(), PtxType.B32), l.target(pair.second(), PtxType.PRED)};
        }
        return new VReg[] {l.target(operand, PtxType.B32), null};
    }

    /** The two modifiers other than .sync, which stands before or between them. */
    private static List<String> synchronous(Lowering l, Statement.Instruction i) throws PtxException {
        List<String> words = new ArrayList<>(i.modifiers());
        if (!words.remove("sync") || words.size() != 2) {
            throw l.unsupported(i);
        }
        return words;
    }

    private static void shfl(Lowering l, Statement.Instruction i) throws PtxException {
        List<String> words = synchronous(l, i);
        if (!SHUFFLES.containsKey(words.get(0)) || !words.get(1).equals("b32")) {
            throw l.unsupported(i);
        }
        l.operands(i, 5, 5);
        List<Src> args = new ArrayList<>();
        for (int k = 1; k < 4; k++) {
            args.add(l.source(i.operands().get(k), PtxType.B32));
        }
        VReg[] to = pair(l, i.operands().get(0));
        warp(l, i, SHUFFLES.get(words.get(0)), i.operands().get(4), args, to[0], to[1]);
    }

    private static void vote(Lowering l, Statement.Instruction i) throws PtxException {
        List<String> words = synchronous(l, i);
        l.operands(i, 3, 3);
        boolean ballot = words.get(0).equals("ballot") && words.get(1).equals("b32");
        if (!ballot && (!VOTES.containsKey(words.get(0)) || !words.get(1).equals("pred"))) {
            throw l.unsupported(i);
        }
        Src predicate = l.source(i.operands().get(1), PtxType.PRED);
        Src members = l.source(i.operands().get(2), PtxType.U32);
        VReg target = l.target(i.operands().get(0), ballot ? PtxType.B32 : PtxType.PRED);
        warp(l, i, ballot ? Op.VOTE_BALLOT : VOTES.get(words.get(0)), members, List.of(predicate), PtxType.PRED,
            ballot ? target : null, ballot ? null : target);
    }

    private static void match(Lowering l, Statement.Instruction i) throws PtxException {
        Set<String> words = new HashSet<>(i.modifiers());
        boolean all = words.contains("all");
        boolean wide = words.contains("b64");
        if (words.size() != 3 || !words.contains("sync") || !all && !words.contains("any")
            || !wide && !words.contains("b32")) {
            throw l.unsupported(i);
        }
        l.operands(i, 3, 3);
        PtxType type = wide ? PtxType.U64 : PtxType.U32;
        Src value = l.source(i.operands().get(1), type);
        Src members = l.source(i.operands().get(2), PtxType.U32);
        VReg[] to = pair(l, i.operands().get(0));
        warp(l, i, all ? Op.MATCH_ALL : Op.MATCH_ANY, members, List.of(value), type, to[0], to[1]);
    }

    private static void redux(Lowering l, Statement.Instruction i) throws PtxException {
        List<String> words = synchronous(l, i);
        Op op = REDUCTIONS.get(words.get(0) + "." + words.get(1));
        if (op == null) {
            throw l.unsupported(i);
        }
        l.operands(i, 3, 3);
        Src value = l.source(i.operands().get(1), PtxType.U32);
        warp(l, i, op, i.operands().get(2), List.of(value), l.target(i.operands().get(0), PtxType.B32), null);
    }

    private static void activemask(Lowering l, Statement.Instruction i) throws PtxException {
        l.operands(i, 1, 1);
        warp(l, i, Op.ACTIVEMASK, null, List.of(), l.target(i.operands().get(0), PtxType.B32), null);
    }

    private static void elect(Lowering l, Statement.Instruction i) throws PtxException {
        l.operands(i, 2, 2);
        VReg[] to = pair(l, i.operands().get(0));
        warp(l, i, Op.ELECT, i.operands().get(1), List.of(), to[0], to[1]);
    }

    private static void fence(Lowering l, Statement.Instruction i) throws PtxException {
        if (i.modifiers().contains("mbarrier_init") || i.modifiers().contains("proxy")) {
            throw l.unsupported(i);
        }
        l.add(i, l.ins(i).emits(g -> g.call("Mem", "fence", "V")));
    }

    private static void nanosleep(Lowering l, Statement.Instruction i) throws PtxException {
        l.operands(i, 1, 1);
        Ins ins = l.ins(i).emits(g -> g.call("Builtins", "sleep", "V"));
        ins.spins = true;
        l.add(i, ins);
    }
}
