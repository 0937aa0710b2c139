package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.PtxException;
import io.hawser.gpu.software.ptx.PtxType;
import io.hawser.gpu.software.ptx.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Lowers carry chains: add.cc, addc, sub.cc, subc, mad.cc and madc. CC.CF is a register of the activation. Results go
 * to temporaries first, because an instruction's target may be one of its operands.
 */
final class CarryRules {
    private CarryRules() {
    }

    static void register(Map<String, Lowering.Rule> rules) {
        for (String op : List.of("add", "addc", "sub", "subc", "mad", "madc")) {
            rules.put(op, CarryRules::lower);
        }
    }

    private static void lower(Lowering l, Statement.Instruction i) throws PtxException {
        boolean carries = i.op().endsWith("c");
        boolean sets = i.modifiers().contains("cc");
        if (!carries && !sets) {
            ArithmeticRules.lower(l, i);
            return;
        }
        List<PtxType> types = Lowering.types(i);
        if (types.size() != 1 || types.get(0).jvm() == 'F' || types.get(0).jvm() == 'D' || types.get(0).bits() < 32) {
            throw l.unsupported(i);
        }
        PtxType type = types.get(0).bits() == 32 ? PtxType.U32 : PtxType.U64;
        boolean mad = i.op().startsWith("mad");
        l.operands(i, mad ? 4 : 3, mad ? 4 : 3);
        if (l.at.carry == null) {
            l.at.carry = l.temporary(PtxType.U32);
        }
        Src a = l.source(i.operands().get(1), type);
        Src b = l.source(i.operands().get(2), type);
        if (mad) {
            String half = i.modifiers().contains("hi") ? "hi" : "lo";
            a = Src.of(compute(l, i, "mul." + half + "." + types.get(0).ptxName(), types.get(0), a, b));
            b = l.source(i.operands().get(3), type);
        }
        boolean subtract = i.op().startsWith("sub");
        Src in = carries ? Src.of(l.at.carry) : Src.of(subtract ? 1 : 0);
        VReg result = compute(l, i, (subtract ? "subc." : "addc.") + type.ptxName(), type, a, b, in);
        if (sets) {
            VReg out = compute(l, i, (subtract ? "subcarry." : "carry.") + type.ptxName(), PtxType.U32, a, b, in);
            copy(l, i, l.at.carry, out, PtxType.U32);
        }
        copy(l, i, l.target(i.operands().get(0), type), result, type);
    }

    private static VReg compute(Lowering l, Statement.Instruction i, String key, PtxType type, Src... args) {
        Alu alu = Alu.find(key);
        VReg result = l.temporary(type);
        List<Src> sources = new ArrayList<>(List.of(args));
        Ins ins = new Ins(i.line()).def(result, type);
        for (int k = 0; k < sources.size(); k++) {
            ins.use(sources.get(k), alu.args().get(k));
        }
        l.add(ins.emits(g -> {
            for (int k = 0; k < sources.size(); k++) {
                g.push(sources.get(k), alu.args().get(k));
            }
            alu.code().accept(g);
            g.pop(result, type);
        }));
        return result;
    }

    private static void copy(Lowering l, Statement.Instruction i, VReg to, VReg from, PtxType type) {
        l.add(i, l.ins(i).use(Src.of(from), type).def(to, type).emits(g -> {
            g.push(Src.of(from), type);
            g.pop(to, type);
        }));
    }
}
