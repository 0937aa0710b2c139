package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.exec.Atomics.Op;
import io.hawser.gpu.software.ptx.Operand;
import io.hawser.gpu.software.ptx.PtxException;
import io.hawser.gpu.software.ptx.PtxType;
import io.hawser.gpu.software.ptx.Statement;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Lowers atom and red. */
final class AtomicRules {
    private static final Map<String, Op> OPS = new HashMap<>();
    private static final Set<String> IGNORED = Set.of("relaxed", "acquire", "release", "acq_rel", "cta", "cluster",
        "gpu", "sys", "noftz");
    private static final Set<String> NAMES = Set.of("and", "or", "xor", "cas", "exch", "add", "inc", "dec", "min",
        "max");

    static {
        for (String type : List.of("b32", "b64")) {
            OPS.put("and." + type, Op.AND);
            OPS.put("or." + type, Op.OR);
            OPS.put("xor." + type, Op.XOR);
            OPS.put("exch." + type, Op.EXCH);
        }
        for (String type : List.of("u32", "s32", "u64", "s64")) {
            OPS.put("add." + type, Op.ADD_I);
            OPS.put("min." + type, type.startsWith("s") ? Op.MIN_S : Op.MIN_U);
            OPS.put("max." + type, type.startsWith("s") ? Op.MAX_S : Op.MAX_U);
        }
        OPS.put("inc.u32", Op.INC_U32);
        OPS.put("dec.u32", Op.DEC_U32);
        OPS.put("add.f32", Op.ADD_F32);
        OPS.put("add.f64", Op.ADD_F64);
        OPS.put("add.f16x2", Op.ADD_F16X2);
        OPS.put("add.bf16x2", Op.ADD_BF16X2);
        OPS.put("min.f16x2", Op.MIN_F16X2);
        OPS.put("max.f16x2", Op.MAX_F16X2);
        OPS.put("min.bf16x2", Op.MIN_BF16X2);
        OPS.put("max.bf16x2", Op.MAX_BF16X2);
    }

    private AtomicRules() {
    }

    static void register(Map<String, Lowering.Rule> rules) {
        rules.put("atom", AtomicRules::lower);
        rules.put("red", AtomicRules::lower);
    }

    private static void lower(Lowering l, Statement.Instruction i) throws PtxException {
        MemoryRules.Space space = MemoryRules.Space.GENERIC;
        String op = null;
        PtxType type = null;
        boolean hint = false;
        for (String word : i.modifiers()) {
            MemoryRules.Space named = MemoryRules.space(l, i, word);
            if (named != null) {
                space = named;
            } else if (NAMES.contains(word)) {
                op = word;
            } else if (PtxType.byName(word) != null) {
                type = PtxType.byName(word);
            } else if (word.equals("L2::cache_hint")) {
                hint = true;
            } else if (!IGNORED.contains(word)) {
                throw l.unsupported(i);
            }
        }
        if (op == null || type == null || space == MemoryRules.Space.LOCAL || space == MemoryRules.Space.PARAM) {
            throw l.unsupported(i);
        }
        boolean cas = op.equals("cas");
        boolean half = op.equals("add") && (type == PtxType.F16 || type == PtxType.BF16);
        Op code = OPS.get(op + "." + type.ptxName());
        if (!half && code == null && !(cas && (type.untyped() || type.jvm() == 'J' || type.bits() == 32)
            && type.bits() >= 16 && type.bits() <= 64)) {
            throw l.unsupported(i);
        }
        int first = i.op().equals("atom") ? 1 : 0;
        int count = first + 2 + (cas ? 1 : 0) + (hint ? 1 : 0);
        l.operands(i, count, count);
        // All operations work on bits: a floating operand is passed as its bits.
        PtxType as = type.bits() == 16 ? PtxType.U16 : type.bits() == 32 ? PtxType.U32 : PtxType.U64;
        PtxType vote = type.floating() ? type : as;
        Address address = Address.of(l, i.operands().get(first));
        List<Src> values = new ArrayList<>();
        Ins ins = l.ins(i);
        address.use(ins);
        for (int k = 0; k < (cas ? 2 : 1); k++) {
            Operand operand = i.operands().get(first + 1 + k);
            Src src = l.source(operand, operand instanceof Operand.FpImm || operand instanceof Operand.IntImm
                && type.floating() ? type : as);
            values.add(constantBits(src, type));
            ins.use(src, vote);
        }
        VReg target = first == 1 ? l.target(i.operands().get(0), as) : null;
        if (target != null) {
            ins.def(target, vote);
        }
        MemoryRules.needs(ins, space);
        ins.spins = true;
        String name = (space == MemoryRules.Space.SHARED ? "window"
            : space == MemoryRules.Space.GLOBAL ? "global" : "generic")
            + (half ? "Add16" : (cas ? "Cas" : "") + type.bits());
        int last = half ? type == PtxType.BF16 ? 1 : 0 : cas ? -1 : code.ordinal();
        MemoryRules.Space where = space;
        l.add(i, ins.emits(g -> emit(g, where, name, address, values, as, last, target)));
    }

    private static Src constantBits(Src src, PtxType type) {
        if (!(src instanceof Src.Fp f)) {
            return src;
        }
        double value = f.single() ? Float.intBitsToFloat((int) f.bits()) : Double.longBitsToDouble(f.bits());
        return Src.of(type == PtxType.F64 ? Double.doubleToRawLongBits(value)
            : f.single() ? f.bits() : Float.floatToRawIntBits((float) value));
    }

    private static void emit(Gen g, MemoryRules.Space space, String name, Address address, List<Src> values, PtxType as,
        int last, VReg target) {
        StringBuilder signature = new StringBuilder().append(as.jvm());
        if (space == MemoryRules.Space.SHARED) {
            g.shared();
            int words = address.pushBase(g);
            g.push(words * 4);
            g.cb.iadd();
            signature.append("AI");
        } else {
            g.globals();
            signature.append('G');
            if (space == MemoryRules.Space.GENERIC) {
                g.slot();
                g.thread();
                signature.append("CI");
            }
            address.pushLong(g);
            signature.append('J');
        }
        for (Src value : values) {
            g.push(value, as);
            signature.append(as.jvm());
        }
        if (last >= 0) {
            g.push(last);
            signature.append('I');
        }
        g.call("Atomics", name, signature.toString());
        if (target == null) {
            if (as.jvm() == 'J') {
                g.cb.pop2();
            } else {
                g.cb.pop();
            }
        } else {
            g.pop(target, as);
        }
    }
}
