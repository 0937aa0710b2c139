package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.Operand;
import io.hawser.gpu.software.ptx.PtxException;
import io.hawser.gpu.software.ptx.PtxType;
import io.hawser.gpu.software.ptx.Statement;
import java.lang.classfile.Opcode;
import java.lang.constant.ConstantDescs;
import java.lang.constant.MethodTypeDesc;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Lowers setp, set, selp and slct. */
final class CompareRules {
    private static final Set<String> INTEGER = Set.of("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs");
    private static final Set<String> FLOATING = Set.of("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu",
        "gtu", "geu", "num", "nan");
    private static final Set<String> BOOLEAN = Set.of("and", "or", "xor");
    private static final Map<String, Opcode> IF = Map.of("eq", Opcode.IFEQ, "ne", Opcode.IFNE, "lt", Opcode.IFLT,
        "le", Opcode.IFLE, "gt", Opcode.IFGT, "ge", Opcode.IFGE);
    private static final Map<String, Opcode> IF_INT = Map.of("eq", Opcode.IF_ICMPEQ, "ne", Opcode.IF_ICMPNE,
        "lt", Opcode.IF_ICMPLT, "le", Opcode.IF_ICMPLE, "gt", Opcode.IF_ICMPGT, "ge", Opcode.IF_ICMPGE);
    private static final Map<String, String> UNSIGNED = Map.of("lo", "lt", "ls", "le", "hi", "gt", "hs", "ge");

    /** The parsed modifiers. */
    private record Shape(String comparison, String combine, boolean flush, PtxType type, PtxType result) {}

    private CompareRules() {
    }

    static void register(Map<String, Lowering.Rule> rules) {
        rules.put("setp", CompareRules::setp);
        rules.put("set", CompareRules::set);
        rules.put("selp", CompareRules::selp);
        rules.put("slct", CompareRules::slct);
    }

    private static Shape shape(Lowering l, Statement.Instruction i, int types) throws PtxException {
        String comparison = null;
        String combine = null;
        boolean flush = false;
        for (String word : i.modifiers()) {
            if (PtxType.byName(word) != null) {
                continue;
            }
            if (comparison == null) {
                comparison = word;
            } else if (BOOLEAN.contains(word) && combine == null) {
                combine = word;
            } else if (word.equals("ftz")) {
                flush = true;
            } else {
                throw l.unsupported(i);
            }
        }
        List<PtxType> found = Lowering.types(i);
        if (found.size() != types || comparison == null) {
            throw l.unsupported(i);
        }
        PtxType type = found.getLast();
        boolean floating = type.floating() || half(type) != null;
        boolean packed = type == PtxType.F16X2 || type == PtxType.BF16X2;
        if (!(floating || packed ? FLOATING : INTEGER).contains(comparison) || type == PtxType.PRED
            || type.bits() == 8 || type.bits() > 64) {
            throw l.unsupported(i);
        }
        return new Shape(comparison, combine, flush, type, found.getFirst());
    }

    private static String half(PtxType type) {
        return type == PtxType.F16 || type == PtxType.F16X2 ? "f16"
            : type == PtxType.BF16 || type == PtxType.BF16X2 ? "bf16" : null;
    }

    private static boolean packed(PtxType type) {
        return type == PtxType.F16X2 || type == PtxType.BF16X2;
    }

    private static void setp(Lowering l, Statement.Instruction i) throws PtxException {
        Shape shape = shape(l, i, 1);
        l.operands(i, shape.combine() == null ? 3 : 4, shape.combine() == null ? 3 : 4);
        Operand first = i.operands().get(0);
        Operand second = null;
        if (first instanceof Operand.Pair pair) {
            first = pair.first();
            second = pair.second();
        }
        Src a = l.source(i.operands().get(1), shape.type());
        Src b = l.source(i.operands().get(2), shape.type());
        Src c = shape.combine() == null ? null : l.source(i.operands().get(3), PtxType.PRED);
        VReg p = l.target(first, PtxType.PRED);
        VReg q = second == null ? null : l.target(second, PtxType.PRED);
        Ins ins = l.ins(i).use(a, shape.type()).use(b, shape.type()).def(p, PtxType.PRED);
        if (c != null) {
            ins.use(c, PtxType.PRED);
        }
        if (q != null) {
            ins.def(q, PtxType.PRED);
        }
        l.add(i, ins.emits(g -> {
            if (q != null && packed(shape.type())) {
                // Pushes both before storing either: a target may be the combined predicate.
                compare(g, shape, a, b, "low");
                combine(g, shape, c);
                compare(g, shape, a, b, "high");
                combine(g, shape, c);
                g.pop(q, PtxType.PRED);
            } else {
                compare(g, shape, a, b, "low");
                if (q != null) {
                    g.cb.dup().iconst_1().ixor();
                    combine(g, shape, c);
                    g.cb.swap();
                    combine(g, shape, c);
                    g.cb.swap();
                    g.pop(q, PtxType.PRED);
                } else {
                    combine(g, shape, c);
                }
            }
            g.pop(p, PtxType.PRED);
        }));
    }

    private static void combine(Gen g, Shape shape, Src c) {
        if (c == null) {
            return;
        }
        g.push(c, PtxType.PRED);
        switch (shape.combine()) {
            case "and" -> g.cb.iand();
            case "or" -> g.cb.ior();
            default -> g.cb.ixor();
        }
    }

    private static void set(Lowering l, Statement.Instruction i) throws PtxException {
        Shape shape = shape(l, i, 2);
        l.operands(i, shape.combine() == null ? 3 : 4, shape.combine() == null ? 3 : 4);
        Src a = l.source(i.operands().get(1), shape.type());
        Src b = l.source(i.operands().get(2), shape.type());
        Src c = shape.combine() == null ? null : l.source(i.operands().get(3), PtxType.PRED);
        PtxType result = shape.result();
        if (packed(shape.type()) ? result.bits() != 32 || result == PtxType.F32
            : result.bits() > 32 || result.bits() < 16 || packed(result)) {
            throw l.unsupported(i);
        }
        VReg target = l.target(i.operands().get(0), result);
        Ins ins = l.ins(i).use(a, shape.type()).use(b, shape.type()).def(target, result);
        if (c != null) {
            ins.use(c, PtxType.PRED);
        }
        int one = switch (result) {
            case F16, F16X2 -> 0x3C00;
            case BF16, BF16X2 -> 0x3F80;
            case F32 -> Float.floatToRawIntBits(1);
            default -> packed(shape.type()) ? 0xFFFF : -1;
        };
        l.add(i, ins.emits(g -> {
            compare(g, shape, a, b, "low");
            combine(g, shape, c);
            g.cb.ineg();
            g.push(one);
            g.cb.iand();
            if (packed(shape.type())) {
                compare(g, shape, a, b, "high");
                combine(g, shape, c);
                g.cb.ineg();
                g.push(one);
                g.cb.iand();
                g.call("HalfMath", "pair", "III");
            }
            g.convert(PtxType.B32, result.jvm() == 'F' ? PtxType.F32 : PtxType.B32);
            g.pop(target, result.jvm() == 'F' ? PtxType.F32 : result);
        }));
    }

    /** Pushes 1 or 0. */
    private static void compare(Gen g, Shape shape, Src a, Src b, String lane) {
        PtxType type = shape.type();
        for (Src src : List.of(a, b)) {
            g.push(src, type);
            if (half(type) != null) {
                if (packed(type)) {
                    g.call("HalfMath", lane, "II");
                }
                if (shape.flush()) {
                    g.call("HalfMath", half(type).equals("f16") ? "flushF16" : "flushBf16", "II");
                }
                g.call("HalfMath", half(type), "FI");
            } else if (shape.flush() && type == PtxType.F32
                && !(src instanceof Src.R r && r.reg().alwaysFlushed())) {
                g.call("FloatMath", "flush", "FF");
            }
        }
        if (type.floating() || half(type) != null) {
            floating(g, shape.comparison(), type == PtxType.F64);
        } else {
            integer(g, shape.comparison(), type);
        }
    }

    private static void integer(Gen g, String word, PtxType type) {
        boolean unsigned = UNSIGNED.containsKey(word)
            || !type.signed() && !type.untyped() && !word.equals("eq") && !word.equals("ne");
        String comparison = UNSIGNED.getOrDefault(word, word);
        if (type.jvm() == 'J') {
            if (unsigned) {
                g.cb.invokestatic(ConstantDescs.CD_Long, "compareUnsigned", MethodTypeDesc.of(ConstantDescs.CD_int,
                    ConstantDescs.CD_long, ConstantDescs.CD_long));
            } else {
                g.cb.lcmp();
            }
            zeroOne(g, IF.get(comparison));
        } else if (unsigned && type.bits() == 32) {
            g.cb.invokestatic(ConstantDescs.CD_Integer, "compareUnsigned", MethodTypeDesc.of(ConstantDescs.CD_int,
                ConstantDescs.CD_int, ConstantDescs.CD_int));
            zeroOne(g, IF.get(comparison));
        } else {
            zeroOne(g, IF_INT.get(comparison));
        }
    }

    private static void floating(Gen g, String word, boolean f64) {
        String signature = f64 ? "IDD" : "IFF";
        switch (word) {
            case "ne", "equ", "num", "nan" -> g.call("Compare", word, signature);
            default -> {
                boolean unordered = word.length() == 3;
                String comparison = unordered ? word.substring(0, 2) : word;
                // The JVM has two comparisons: NaN counts as greater (g) or less (l).
                boolean lessIsTrue = comparison.startsWith("l");
                boolean nanGreater = lessIsTrue != unordered;
                if (f64) {
                    g.cb.with(java.lang.classfile.instruction.OperatorInstruction.of(
                        nanGreater ? Opcode.DCMPG : Opcode.DCMPL));
                } else {
                    g.cb.with(java.lang.classfile.instruction.OperatorInstruction.of(
                        nanGreater ? Opcode.FCMPG : Opcode.FCMPL));
                }
                zeroOne(g, IF.get(comparison));
            }
        }
    }

    private static void zeroOne(Gen g, Opcode branch) {
        var yes = g.cb.newLabel();
        var end = g.cb.newLabel();
        g.cb.branch(branch, yes).iconst_0().goto_(end).labelBinding(yes).iconst_1().labelBinding(end);
    }

    private static void selp(Lowering l, Statement.Instruction i) throws PtxException {
        l.operands(i, 4, 4);
        List<PtxType> types = Lowering.types(i);
        if (types.size() != 1 || i.modifiers().size() != 1) {
            throw l.unsupported(i);
        }
        PtxType type = types.get(0);
        Src a = l.source(i.operands().get(1), type);
        Src b = l.source(i.operands().get(2), type);
        Src p = l.source(i.operands().get(3), PtxType.PRED);
        VReg target = l.target(i.operands().get(0), type);
        choose(l, i, type, target, a, b, l.ins(i).use(p, PtxType.PRED), g -> {
            g.push(p, PtxType.PRED);
            return Opcode.IFNE;
        });
    }

    private interface Chooser {
        Opcode emit(Gen g);
    }

    private static void choose(Lowering l, Statement.Instruction i, PtxType type, VReg target, Src a, Src b, Ins ins,
        Chooser chooser) {
        ins.use(a, type).use(b, type).def(target, type);
        l.add(i, ins.emits(g -> {
            // With a float register as target, an untyped selection is made as float.
            PtxType as = target.jvm == 'F' && type.bits() == 32 ? PtxType.F32
                : target.jvm == 'D' && type.bits() == 64 ? PtxType.F64 : type;
            boolean constants = a instanceof Src.Int || b instanceof Src.Int;
            PtxType form = constants && type.untyped() || !type.untyped() && !type.floating() ? type : as;
            var yes = g.cb.newLabel();
            var end = g.cb.newLabel();
            Opcode branch = chooser.emit(g);
            g.cb.branch(branch, yes);
            g.push(b, form);
            g.cb.goto_(end);
            g.cb.labelBinding(yes);
            g.push(a, form);
            g.cb.labelBinding(end);
            g.pop(target, form);
        }));
    }

    private static void slct(Lowering l, Statement.Instruction i) throws PtxException {
        l.operands(i, 4, 4);
        List<PtxType> types = Lowering.types(i);
        boolean flush = i.modifiers().contains("ftz");
        if (types.size() != 2 || i.modifiers().size() != (flush ? 3 : 2)
            || types.get(1) != PtxType.S32 && types.get(1) != PtxType.F32) {
            throw l.unsupported(i);
        }
        PtxType type = types.get(0);
        boolean floating = types.get(1) == PtxType.F32;
        Src a = l.source(i.operands().get(1), type);
        Src b = l.source(i.operands().get(2), type);
        Src c = l.source(i.operands().get(3), types.get(1));
        VReg target = l.target(i.operands().get(0), type);
        choose(l, i, type, target, a, b, l.ins(i).use(c, types.get(1)), g -> {
            g.push(c, types.get(1));
            if (floating) {
                if (flush) {
                    g.call("FloatMath", "flush", "FF");
                }
                g.cb.fconst_0().fcmpl();
            }
            return Opcode.IFGE;
        });
    }
}
