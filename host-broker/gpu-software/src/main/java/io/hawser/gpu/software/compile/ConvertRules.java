package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.PtxException;
import io.hawser.gpu.software.ptx.PtxType;
import io.hawser.gpu.software.ptx.Statement;
import java.util.List;
import java.util.Map;

/** Lowers all forms of cvt. */
final class ConvertRules {
    private static final Map<String, Integer> MODES = Map.of("rn", 0, "rz", 1, "rm", 2, "rp", 3, "rni", 0, "rzi", 1,
        "rmi", 2, "rpi", 3);

    /** The parsed modifiers. */
    private record Shape(PtxType to, PtxType from, int mode, boolean whole, boolean flush, boolean saturate,
        boolean relu) {}

    private ConvertRules() {
    }

    static void register(Map<String, Lowering.Rule> rules) {
        rules.put("cvt", ConvertRules::cvt);
    }

    private static void cvt(Lowering l, Statement.Instruction i) throws PtxException {
        List<PtxType> types = Lowering.types(i);
        if (i.modifiers().contains("pack")) {
            pack(l, i, types);
            return;
        }
        int mode = 0;
        boolean rounded = false;
        boolean whole = false;
        boolean flush = false;
        boolean saturate = false;
        boolean relu = false;
        for (String word : i.modifiers()) {
            if (MODES.containsKey(word)) {
                mode = MODES.get(word);
                rounded = true;
                whole = word.length() == 3;
            } else if (word.equals("ftz")) {
                flush = true;
            } else if (word.equals("sat")) {
                saturate = true;
            } else if (word.equals("relu")) {
                relu = true;
            } else if (PtxType.byName(word) == null) {
                throw l.unsupported(i);
            }
        }
        if (types.size() != 2) {
            throw l.unsupported(i);
        }
        PtxType to = types.get(0);
        PtxType from = types.get(1);
        Shape shape = new Shape(to, from, mode, whole, flush, saturate, relu);
        boolean packed = to == PtxType.F16X2 || to == PtxType.BF16X2;
        if (packed ? from != PtxType.F32 : !convertible(to) || !convertible(from)) {
            throw l.unsupported(i);
        }
        if (floating(from) && !floating(to) && !whole && !packed || relu && floatHalf(to) == null && !packed) {
            throw rounded || relu ? l.unsupported(i) : l.invalid(i.spelling() + " must have a rounding modifier");
        }
        l.operands(i, packed ? 3 : 2, packed ? 3 : 2);
        if (packed) {
            packed(l, i, shape);
            return;
        }
        Src src = l.source(i.operands().get(1), from);
        VReg target = l.target(i.operands().get(0), to);
        Ins ins = l.ins(i).use(src, from).def(target, to, to == PtxType.F32 && flush, to == PtxType.F32);
        l.add(i, ins.emits(g -> {
            g.push(src, from);
            if (shape.flush() && from == PtxType.F32) {
                g.call("FloatMath", "flush", "FF");
            }
            convert(g, shape);
            g.pop(target, to);
        }));
    }

    private static boolean convertible(PtxType type) {
        return type != PtxType.PRED && !type.untyped() && type.bits() <= 64 && type != PtxType.TF32
            && !type.ptxName().contains("x2");
    }

    private static boolean floating(PtxType type) {
        return type.floating() || floatHalf(type) != null;
    }

    private static String floatHalf(PtxType type) {
        return type == PtxType.F16 ? "f16" : type == PtxType.BF16 ? "bf16" : null;
    }

    private static void convert(Gen g, Shape s) {
        if (!floating(s.from())) {
            if (floating(s.to())) {
                integerToFloat(g, s);
                finish(g, s);
            } else {
                integers(g, s);
            }
        } else if (floating(s.to())) {
            floats(g, s);
            finish(g, s);
        } else {
            floatToInteger(g, s);
        }
    }

    private static void finish(Gen g, Shape s) {
        String half = s.to() == PtxType.F16 ? "F16" : "Bf16";
        if (s.saturate()) {
            switch (s.to()) {
                case F32 -> g.call("FloatMath", "saturate", "FF");
                case F64 -> g.call("FloatMath", "saturate", "DD");
                default -> g.call("HalfMath", "saturate" + half, "II");
            }
        }
        if (s.relu()) {
            g.call("HalfMath", "relu" + half, "II");
        }
        if (s.flush() && s.to() == PtxType.F32) {
            g.call("FloatMath", "flush", "FF");
        }
    }

    private static long least(PtxType type) {
        return type.signed() ? -1L << type.bits() - 1 : 0;
    }

    private static long most(PtxType type) {
        return type.signed() ? ~least(type) : type.bits() == 64 ? -1 : (1L << type.bits()) - 1;
    }

    private static void integers(Gen g, Shape s) {
        boolean fromUnsignedLong = s.from() == PtxType.U64;
        if (s.saturate()) {
            g.convert(s.from(), PtxType.S64);
            long most = s.to() == PtxType.U64 && !fromUnsignedLong ? Long.MAX_VALUE : most(s.to());
            if (fromUnsignedLong) {
                g.push(most);
                g.call("Convert", "clampUnsigned", "JJJ");
            } else {
                g.push(least(s.to()));
                g.push(most);
                g.call("Convert", "clamp", "JJJJ");
            }
            g.convert(PtxType.S64, s.to());
        } else {
            g.convert(s.from(), s.to());
        }
    }

    private static void floatToInteger(Gen g, Shape s) {
        if (s.mode() == 1 && (s.from() == PtxType.F32 || s.from() == PtxType.F64)) {
            // The JVM's own conversion truncates, saturates and turns NaN into 0, as PTX does.
            boolean f32 = s.from() == PtxType.F32;
            if (s.to() == PtxType.S32) {
                g.cb.with(java.lang.classfile.instruction.ConvertInstruction.of(
                    f32 ? java.lang.classfile.Opcode.F2I : java.lang.classfile.Opcode.D2I));
                return;
            }
            if (s.to() == PtxType.S64) {
                g.cb.with(java.lang.classfile.instruction.ConvertInstruction.of(
                    f32 ? java.lang.classfile.Opcode.F2L : java.lang.classfile.Opcode.D2L));
                return;
            }
        }
        toDouble(g, s.from());
        g.push(s.mode());
        g.call("Convert", "whole", "DDI");
        switch (s.to()) {
            case S32 -> g.cb.d2i();
            case S64 -> g.cb.d2l();
            case U32 -> g.call("Convert", "toU32", "ID");
            case U64 -> g.call("Convert", "toU64", "JD");
            default -> {
                g.push((int) least(s.to()));
                g.push((int) most(s.to()));
                g.call("Convert", "toNarrow", "IDII");
            }
        }
    }

    private static void toFloat(Gen g, PtxType from) {
        if (floatHalf(from) != null) {
            g.call("HalfMath", floatHalf(from), "FI");
        }
    }

    private static void toDouble(Gen g, PtxType from) {
        toFloat(g, from);
        if (from != PtxType.F64) {
            g.cb.f2d();
        }
    }

    private static void integerToFloat(Gen g, Shape s) {
        boolean unsignedLong = s.from() == PtxType.U64;
        String half = floatHalf(s.to());
        if (half != null) {
            g.convert(s.from(), PtxType.S64);
            g.call("Convert", unsignedLong ? "oddFromU64" : "oddFromLong", "DJ");
            halfFromDouble(g, s);
            return;
        }
        boolean f32 = s.to() == PtxType.F32;
        boolean exact = s.from().bits() <= (f32 ? 16 : 32);
        if (s.mode() == 0 || exact) {
            if (s.from().jvm() == 'I' && (s.from().signed() || s.from().bits() < 32)) {
                if (f32) {
                    g.cb.i2f();
                } else {
                    g.cb.i2d();
                }
                return;
            }
            g.convert(s.from(), PtxType.S64);
            if (unsignedLong) {
                g.call("Convert", f32 ? "f32FromU64" : "f64FromU64", f32 ? "FJ" : "DJ");
            } else if (f32) {
                g.cb.l2f();
            } else {
                g.cb.l2d();
            }
            return;
        }
        g.convert(s.from(), PtxType.S64);
        g.push(s.mode());
        String name = (f32 ? "f32From" : "f64From") + (unsignedLong ? "U64" : "Long");
        g.call("Convert", name, f32 ? "FJI" : "DJI");
    }

    private static void halfFromDouble(Gen g, Shape s) {
        String name = s.to() == PtxType.F16 ? "f16FromF64" : "bf16FromF64";
        if (s.mode() == 0) {
            g.call("Convert", name, "ID");
        } else {
            g.push(s.mode());
            g.call("Convert", name + "Toward", "IDI");
        }
    }

    private static void floats(Gen g, Shape s) {
        boolean same = s.from() == s.to();
        String half = floatHalf(s.to());
        if (half != null) {
            if (same && !s.whole()) {
                return;
            }
            toDouble(g, s.from());
            if (s.whole()) {
                g.push(s.mode());
                g.call("Convert", "whole", "DDI");
                g.call("Convert", s.to() == PtxType.F16 ? "f16FromF64" : "bf16FromF64", "ID");
            } else {
                halfFromDouble(g, s);
            }
            return;
        }
        toFloat(g, s.from());
        boolean wide = s.from() == PtxType.F64;
        if (s.whole()) {
            g.push(s.mode());
            g.call("Convert", "whole", wide ? "DDI" : "FFI");
        }
        if (wide && s.to() == PtxType.F32) {
            if (s.mode() == 0 || s.whole()) {
                g.cb.d2f();
            } else {
                g.push(s.mode());
                g.call("Convert", "f32FromF64", "FDI");
            }
        } else if (!wide && s.to() == PtxType.F64) {
            g.cb.f2d();
        }
    }

    /** Converts two f32 to a packed pair: the first operand becomes the upper half. */
    private static void packed(Lowering l, Statement.Instruction i, Shape s) throws PtxException {
        PtxType lane = s.to() == PtxType.F16X2 ? PtxType.F16 : PtxType.BF16;
        Shape one = new Shape(lane, PtxType.F32, s.mode(), false, s.flush(), s.saturate(), s.relu());
        Src high = l.source(i.operands().get(1), PtxType.F32);
        Src low = l.source(i.operands().get(2), PtxType.F32);
        VReg target = l.target(i.operands().get(0), PtxType.B32);
        l.add(i, l.ins(i).use(high, PtxType.F32).use(low, PtxType.F32).def(target, s.to()).emits(g -> {
            for (Src src : List.of(low, high)) {
                g.push(src, PtxType.F32);
                if (s.flush()) {
                    g.call("FloatMath", "flush", "FF");
                }
                convert(g, one);
            }
            g.call("HalfMath", "pair", "III");
            g.pop(target, s.to());
        }));
    }

    /** cvt.pack.sat: saturates and joins a and b, b lowest; for 8 bits, the lower half of c goes above them. */
    private static void pack(Lowering l, Statement.Instruction i, List<PtxType> types) throws PtxException {
        if (!i.modifiers().contains("sat") || types.size() < 2 || types.get(1) != PtxType.S32
            || types.get(0).bits() > 16 || types.get(0).bits() < 8 || floating(types.get(0))) {
            throw l.unsupported(i);
        }
        PtxType narrow = types.get(0);
        boolean third = narrow.bits() == 8;
        l.operands(i, third ? 4 : 3, third ? 4 : 3);
        Src a = l.source(i.operands().get(1), PtxType.S32);
        Src b = l.source(i.operands().get(2), PtxType.S32);
        Src c = third ? l.source(i.operands().get(3), PtxType.B32) : Src.of(0);
        VReg target = l.target(i.operands().get(0), PtxType.B32);
        Ins ins = l.ins(i).use(a, PtxType.S32).use(b, PtxType.S32).use(c, PtxType.S32).def(target, PtxType.U32);
        int mask = (1 << narrow.bits()) - 1;
        l.add(i, ins.emits(g -> {
            g.push(c, PtxType.B32);
            g.push(16);
            g.cb.ishl();
            for (Src src : List.of(b, a)) {
                g.push(src, PtxType.S32);
                g.push((int) least(narrow));
                g.push((int) most(narrow));
                g.call("Convert", "clamp", "IIII");
                g.push(mask);
                g.cb.iand();
                g.push(src == a ? narrow.bits() : 0);
                g.cb.ishl().ior();
            }
            g.pop(target, PtxType.U32);
        }));
    }
}
