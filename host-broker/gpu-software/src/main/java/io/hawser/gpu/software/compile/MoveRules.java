package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.Operand;
import io.hawser.gpu.software.ptx.PtxException;
import io.hawser.gpu.software.ptx.PtxType;
import io.hawser.gpu.software.ptx.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Lowers all forms of mov, and the instructions that convert and test address spaces. */
final class MoveRules {
    private MoveRules() {
    }

    static void register(Map<String, Lowering.Rule> rules) {
        rules.put("mov", MoveRules::mov);
        rules.put("cvta", MoveRules::cvta);
        rules.put("isspacep", MoveRules::isspacep);
        rules.put("mapa", (l, i) -> {
            throw l.unsupported(i);
        });
    }

    private static void mov(Lowering l, Statement.Instruction i) throws PtxException {
        l.operands(i, 2, 2);
        List<PtxType> types = Lowering.types(i);
        if (types.size() != 1 || i.modifiers().size() != 1 || types.get(0) == PtxType.B128) {
            throw l.unsupported(i);
        }
        PtxType type = types.get(0);
        Operand to = i.operands().get(0);
        Operand from = i.operands().get(1);
        if (to instanceof Operand.Vector v) {
            unpack(l, i, type, v.elements(), from);
        } else if (from instanceof Operand.Vector v) {
            pack(l, i, type, to, v.elements());
        } else {
            Src src = l.source(from, type);
            VReg target = l.target(to, type);
            copy(l, i, target, src, type);
        }
    }

    static void copy(Lowering l, Statement.Instruction i, VReg target, Src src, PtxType type) {
        Ins ins = l.ins(i).use(src, type).def(target, type, alreadyFlushed(src), false);
        if (src instanceof Src.R r && !r.negated()) {
            ins.copyOf = r.reg();
        }
        l.add(i, ins.emits(g -> {
            // Registers of one JVM type are copied directly, so that the bits of a NaN stay unchanged.
            if (src instanceof Src.R r && !r.negated() && r.reg().jvm == target.jvm
                && r.reg().bits() <= target.bits()) {
                g.load(r.reg());
                g.store(target);
            } else {
                g.push(src, type);
                popBits(g, target, type);
            }
        }));
    }

    // mov.f32 into an integer register must not change the bits of a NaN.
    private static void popBits(Gen g, VReg target, PtxType type) {
        if (type == PtxType.F32 && target.jvm == 'I') {
            g.cb.invokestatic(java.lang.constant.ConstantDescs.CD_Float, "floatToRawIntBits",
                java.lang.constant.MethodTypeDesc.of(java.lang.constant.ConstantDescs.CD_int,
                    java.lang.constant.ConstantDescs.CD_float));
            g.pop(target, PtxType.B32);
        } else {
            g.pop(target, type);
        }
    }

    private static boolean alreadyFlushed(Src src) {
        return src instanceof Src.Fp f && f.single()
            && Math.abs(Float.intBitsToFloat((int) f.bits())) >= Float.MIN_NORMAL
            || src instanceof Src.Fp z && z.bits() == 0;
    }

    private static PtxType elementType(Lowering l, PtxType whole, int count) throws PtxException {
        int bits = whole.bits() / count;
        if (bits * count != whole.bits() || bits < 8) {
            throw l.invalid("vector must fill ." + whole.ptxName() + ": elements=" + count);
        }
        return PtxType.byName("b" + bits);
    }

    private static void unpack(Lowering l, Statement.Instruction i, PtxType type, List<Operand> to, Operand from)
        throws PtxException {
        PtxType whole = PtxType.byName("b" + type.bits());
        PtxType element = elementType(l, whole, to.size());
        Src src = l.source(from, whole);
        // Reads elements from a copy: one of the targets may be the source.
        VReg copy = l.temporary(whole);
        l.add(i, l.ins(i).use(src, whole).def(copy, whole).emits(g -> {
            g.push(src, whole);
            g.pop(copy, whole);
        }));
        for (int k = 0; k < to.size(); k++) {
            if (to.get(k) instanceof Operand.Sink) {
                continue;
            }
            VReg target = l.target(to.get(k), element);
            int shift = k * element.bits();
            l.add(i, l.ins(i).use(Src.of(copy), whole).def(target, element).emits(g -> {
                g.push(Src.of(copy), whole);
                if (whole.bits() == 64) {
                    g.push(shift);
                    g.cb.lushr();
                    g.cb.l2i();
                } else {
                    g.push(shift);
                    g.cb.iushr();
                }
                if (element.bits() == 16) {
                    g.cb.i2c();
                } else if (element.bits() == 8) {
                    g.push(0xFF);
                    g.cb.iand();
                }
                g.pop(target, element);
            }));
        }
    }

    private static void pack(Lowering l, Statement.Instruction i, PtxType type, Operand to, List<Operand> from)
        throws PtxException {
        PtxType whole = PtxType.byName("b" + type.bits());
        PtxType element = elementType(l, whole, from.size());
        List<Src> parts = new ArrayList<>();
        Ins ins = l.ins(i);
        for (Operand operand : from) {
            Src src = l.source(operand, element);
            parts.add(src);
            ins.use(src, element);
        }
        VReg target = l.target(to, whole);
        ins.def(target, whole);
        l.add(i, ins.emits(g -> {
            for (int k = 0; k < parts.size(); k++) {
                g.push(parts.get(k), element);
                if (whole.bits() == 64) {
                    g.convert(PtxType.U32, PtxType.U64);
                    if (k > 0) {
                        g.push(k * element.bits());
                        g.cb.lshl().lor();
                    }
                } else if (k > 0) {
                    g.push(k * element.bits());
                    g.cb.ishl().ior();
                }
            }
            g.pop(target, whole);
        }));
    }

    private static void cvta(Lowering l, Statement.Instruction i) throws PtxException {
        l.operands(i, 2, 2);
        List<String> words = i.modifiers();
        boolean to = words.contains("to");
        if (words.size() != (to ? 3 : 2) || !words.getLast().equals("u64")) {
            throw l.unsupported(i);
        }
        String space = words.get(to ? 1 : 0);
        String method = switch (space) {
            case "global", "const" -> null;
            case "shared", "shared::cta" -> to ? "toShared" : "genericShared";
            case "local" -> to ? "toLocal" : "genericLocal";
            case "param", "param::entry" -> to ? "toParam" : "genericParam";
            default -> throw l.unsupported(i);
        };
        boolean kernel = l.at.function.function().entry();
        if (method != null && method.endsWith("Param") && !kernel) {
            // A parameter of a function lies in local memory.
            method = to ? "toLocal" : "genericLocal";
        }
        Src src = l.source(i.operands().get(1), PtxType.U64);
        VReg target = l.target(i.operands().get(0), PtxType.U64);
        String call = method;
        l.add(i, l.ins(i).use(src, PtxType.U64).def(target, PtxType.U64).emits(g -> {
            g.push(src, PtxType.U64);
            if (call != null) {
                g.call("Window", call, "JJ");
            }
            g.pop(target, PtxType.U64);
        }));
    }

    private static void isspacep(Lowering l, Statement.Instruction i) throws PtxException {
        l.operands(i, 2, 2);
        String method = switch (i.modifiers().isEmpty() ? "" : i.modifiers().getFirst()) {
            case "global" -> "isGlobal";
            case "shared", "shared::cta" -> "isShared";
            case "local" -> "isLocal";
            case "param", "param::entry" -> "isParam";
            default -> throw l.unsupported(i);
        };
        Src src = l.source(i.operands().get(1), PtxType.U64);
        VReg target = l.target(i.operands().get(0), PtxType.PRED);
        l.add(i, l.ins(i).use(src, PtxType.U64).def(target, PtxType.PRED).emits(g -> {
            g.push(src, PtxType.U64);
            g.call("Window", method, "IJ");
            g.pop(target, PtxType.PRED);
        }));
    }

}
