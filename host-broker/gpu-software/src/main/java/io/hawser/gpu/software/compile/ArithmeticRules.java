package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.PtxException;
import io.hawser.gpu.software.ptx.PtxType;
import io.hawser.gpu.software.ptx.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Lowers arithmetic instructions of {@link Alu}, with flushing, saturation and the packed forms around them. */
final class ArithmeticRules {
    private record Lane(PtxType type, boolean signed) {}

    private static final Map<PtxType, Lane> PACKED = Map.of(PtxType.F16X2, new Lane(PtxType.F16, false),
        PtxType.BF16X2, new Lane(PtxType.BF16, false), PtxType.U16X2, new Lane(PtxType.U16, false),
        PtxType.S16X2, new Lane(PtxType.S16, true));

    private ArithmeticRules() {
    }

    static void lower(Lowering l, Statement.Instruction i) throws PtxException {
        List<PtxType> types = Lowering.types(i);
        if (types.isEmpty()) {
            throw l.unsupported(i);
        }
        PtxType type = types.getLast();
        Lane lane = PACKED.get(type);
        boolean floating = type.floating() || lane != null && isHalf(lane.type()) || isHalf(type);
        boolean flush = false;
        boolean saturate = false;
        boolean relu = false;
        List<String> words = new ArrayList<>();
        words.add(i.op());
        for (String word : i.modifiers()) {
            if (word.equals("ftz") && floating && !(type == PtxType.F64)) {
                flush = true;
            } else if (word.equals("sat") && floating) {
                saturate = true;
            } else if (word.equals("relu") && floating) {
                relu = true;
            } else if (word.equals("relu")) {
                words.add(1, word); // nvcc writes this modifier after the type
            } else if (lane != null && word.equals(type.ptxName())) {
                words.add(lane.type().ptxName());
            } else {
                words.add(word);
            }
        }
        Alu alu = Alu.find(String.join(".", words));
        if (alu == null && words.remove("rn")) {
            alu = Alu.find(String.join(".", words));
        }
        if (alu == null) {
            throw l.unsupported(i);
        }
        l.operands(i, alu.args().size() + 1, alu.args().size() + 1);
        if (lane == null) {
            scalar(l, i, alu, flush, saturate, relu);
        } else {
            packed(l, i, alu, lane, flush, saturate, relu);
        }
    }

    private static boolean isHalf(PtxType type) {
        return type == PtxType.F16 || type == PtxType.BF16;
    }

    private static void scalar(Lowering l, Statement.Instruction i, Alu alu, boolean flush, boolean saturate,
        boolean relu) throws PtxException {
        List<Src> args = new ArrayList<>();
        Ins ins = l.ins(i);
        for (int k = 0; k < alu.args().size(); k++) {
            Src src = l.source(i.operands().get(k + 1), alu.args().get(k));
            args.add(src);
            ins.use(src, alu.args().get(k));
        }
        boolean f32 = alu.result() == PtxType.F32;
        VReg target = l.target(i.operands().get(0), alu.result());
        // abs and neg change only the sign: a NaN keeps its bits.
        boolean computes = f32 && !i.op().equals("neg") && !i.op().equals("abs");
        ins.def(target, alu.result(), f32 && flush, computes);
        l.add(i, ins.emits(g -> {
            for (int k = 0; k < args.size(); k++) {
                PtxType type = alu.args().get(k);
                g.push(args.get(k), type);
                boolean flushed = args.get(k) instanceof Src.R r && r.reg().alwaysFlushed();
                if (flush && !flushed) {
                    flush(g, type);
                }
            }
            alu.code().accept(g);
            finish(g, alu.result(), flush, saturate, relu);
            g.pop(target, alu.result());
        }));
    }

    private static void flush(Gen g, PtxType type) {
        switch (type) {
            case F32 -> g.call("FloatMath", "flush", "FF");
            case F16 -> g.call("HalfMath", "flushF16", "II");
            case BF16 -> g.call("HalfMath", "flushBf16", "II");
            default -> {}
        }
    }

    private static void finish(Gen g, PtxType type, boolean flush, boolean saturate, boolean relu) {
        String half = type == PtxType.F16 ? "F16" : "Bf16";
        if (saturate) {
            switch (type) {
                case F32 -> g.call("FloatMath", "saturate", "FF");
                case F64 -> g.call("FloatMath", "saturate", "DD");
                default -> g.call("HalfMath", "saturate" + half, "II");
            }
        }
        if (relu) {
            if (!isHalf(type)) {
                throw new Refusal(".relu of ." + type.ptxName());
            }
            g.call("HalfMath", "relu" + half, "II");
        }
        if (flush) {
            flush(g, type);
        }
    }

    private static void packed(Lowering l, Statement.Instruction i, Alu alu, Lane lane, boolean flush,
        boolean saturate, boolean relu) throws PtxException {
        List<Src> args = new ArrayList<>();
        Ins ins = l.ins(i);
        for (int k = 0; k < alu.args().size(); k++) {
            Src src = l.source(i.operands().get(k + 1), PtxType.F16X2);
            args.add(src);
            ins.use(src, PtxType.F16X2);
        }
        VReg target = l.target(i.operands().get(0), PtxType.F16X2);
        ins.def(target, PtxType.F16X2);
        String suffix = lane.signed() ? "Signed" : "";
        l.add(i, ins.emits(g -> {
            for (String half : List.of("low", "high")) {
                for (Src src : args) {
                    g.push(src, PtxType.F16X2);
                    g.call("HalfMath", half + suffix, "II");
                    if (flush) {
                        flush(g, lane.type());
                    }
                }
                alu.code().accept(g);
                finish(g, alu.result(), flush, saturate, relu);
            }
            g.call("HalfMath", "pair", "III");
            g.pop(target, PtxType.F16X2);
        }));
    }
}
