package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.exec.Atomics.Op;
import io.hawser.gpu.software.exec.SurfaceUnit.Outside;
import io.hawser.gpu.software.exec.TextureUnit.Geometry;
import io.hawser.gpu.software.ptx.Operand;
import io.hawser.gpu.software.ptx.PtxException;
import io.hawser.gpu.software.ptx.PtxType;
import io.hawser.gpu.software.ptx.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Lowers suld, sust and sured, in their unformatted forms. */
final class SurfaceRules {
    private static final List<String> CACHES = List.of("ca", "cg", "cs", "cv", "wb", "wt");
    private static final int MAX_ACCESS_BYTES = 16;
    private static final Map<String, Op> OPS = Map.ofEntries(Map.entry("add.u32", Op.ADD_I),
        Map.entry("add.s32", Op.ADD_I), Map.entry("add.u64", Op.ADD_I), Map.entry("min.u32", Op.MIN_U),
        Map.entry("min.s32", Op.MIN_S), Map.entry("min.u64", Op.MIN_U), Map.entry("min.s64", Op.MIN_S),
        Map.entry("max.u32", Op.MAX_U), Map.entry("max.s32", Op.MAX_S), Map.entry("max.u64", Op.MAX_U),
        Map.entry("max.s64", Op.MAX_S), Map.entry("and.b32", Op.AND), Map.entry("or.b32", Op.OR));

    /** The place of an access. */
    private record Place(Src surface, List<Src> at, int bytes, Outside outside) {
        void use(Ins ins) {
            ins.use(surface, PtxType.U64);
            at.forEach(part -> ins.use(part, PtxType.U32));
        }

        /** Pushes the address. */
        void push(Gen g) {
            g.globals();
            g.push(surface, PtxType.U64);
            at.forEach(part -> g.push(part, PtxType.U32));
            g.push(bytes);
            g.push(outside.ordinal());
            g.call("SurfaceUnit", "address", "JGJIIIII");
        }
    }

    private SurfaceRules() {
    }

    static void register(Map<String, Lowering.Rule> rules) {
        rules.put("suld", SurfaceRules::suld);
        rules.put("sust", SurfaceRules::sust);
        rules.put("sured", SurfaceRules::sured);
    }

    private static void suld(Lowering l, Statement.Instruction i) throws PtxException {
        List<String> words = words(l, i);
        l.operands(i, 2, 2);
        int vector = vector(words);
        PtxType type = elementType(l, i, words, vector);
        Place place = place(l, i, words, i.operands().get(1), vector * type.bytes());
        List<VReg> targets = new ArrayList<>();
        for (Operand operand : elements(l, i.operands().get(0), vector)) {
            targets.add(l.target(operand, type));
        }
        Ins ins = l.ins(i);
        place.use(ins);
        targets.forEach(t -> ins.def(t, type));
        l.add(i, ins.emits(g -> {
            int at = pushed(g, place);
            for (int k = 0; k < vector; k++) {
                pushElement(g, at, k * type.bytes());
                g.call("SurfaceUnit", "ld" + MemoryRules.suffix(type, true), type.jvm() + "J");
                g.pop(targets.get(k), type);
            }
        }));
    }

    private static void sust(Lowering l, Statement.Instruction i) throws PtxException {
        List<String> words = words(l, i);
        l.operands(i, 2, 2);
        int vector = vector(words);
        PtxType type = elementType(l, i, words, vector);
        Place place = place(l, i, words, i.operands().get(0), vector * type.bytes());
        List<Src> values = new ArrayList<>();
        for (Operand operand : elements(l, i.operands().get(1), vector)) {
            values.add(l.source(operand, type));
        }
        Ins ins = l.ins(i);
        place.use(ins);
        values.forEach(v -> ins.use(v, type));
        l.add(i, ins.emits(g -> {
            int at = pushed(g, place);
            for (int k = 0; k < vector; k++) {
                pushElement(g, at, k * type.bytes());
                g.push(values.get(k), type);
                g.call("SurfaceUnit", "st" + MemoryRules.suffix(type, true), "VJ" + type.jvm());
            }
        }));
    }

    private static void sured(Lowering l, Statement.Instruction i) throws PtxException {
        List<String> words = words(l, i);
        l.operands(i, 2, 2);
        Op op = words.size() > 3 ? OPS.get(words.get(1) + "." + words.get(3)) : null;
        if (op == null) {
            throw l.unsupported(i);
        }
        PtxType type = PtxType.byName(words.get(3)).bits() == 32 ? PtxType.U32 : PtxType.U64;
        words.remove(1);
        Place place = place(l, i, words, i.operands().get(0), type.bytes());
        Operand value = i.operands().get(1);
        Src source = l.source(value instanceof Operand.Vector v ? v.elements().get(0) : value, type);
        Ins ins = l.ins(i).use(source, type);
        place.use(ins);
        l.add(i, ins.emits(g -> {
            g.globals();
            place.push(g);
            g.push(source, type);
            g.push(op.ordinal());
            g.call("SurfaceUnit", "reduce" + type.bits(), "VGJ" + type.jvm() + "I");
        }));
    }

    /** The modifiers without hints to caches; the first is "b", because formatted accesses are unsupported. */
    private static List<String> words(Lowering l, Statement.Instruction i) throws PtxException {
        List<String> words = new ArrayList<>(i.modifiers());
        words.removeIf(CACHES::contains);
        if (words.isEmpty() || !words.get(0).equals("b")) {
            throw l.unsupported(i);
        }
        return words;
    }

    private static int vector(List<String> words) {
        return words.contains("v2") ? 2 : words.contains("v4") ? 4 : 1;
    }

    private static PtxType elementType(Lowering l, Statement.Instruction i, List<String> words, int vector)
        throws PtxException {
        if (vector > 1) {
            words.remove("v" + vector);
        }
        PtxType type = words.size() > 2 ? PtxType.byName(words.get(2)) : null;
        if (type == null || !type.untyped() || type.bytes() * vector > MAX_ACCESS_BYTES) {
            throw l.unsupported(i);
        }
        return type;
    }

    /** The place that an operand names; the words are b, geometry, type and the mode outside. */
    private static Place place(Lowering l, Statement.Instruction i, List<String> words, Operand operand, int bytes)
        throws PtxException {
        Geometry geometry = Geometry.of(words.get(1));
        String mode = words.size() == 4 ? words.get(3) : words.size() == 3 ? "trap" : "";
        if (geometry == null || geometry.cube() || !List.of("trap", "clamp", "zero").contains(mode)) {
            throw l.unsupported(i);
        }
        Operand.Texel texel = TextureRules.texel(l, operand);
        Src surface = l.source(texel.object(), PtxType.U64);
        Operand at = texel.at();
        Src layer = null;
        if (geometry.layered()) {
            List<Operand> all = at instanceof Operand.Vector v ? v.elements() : List.of(at);
            layer = l.source(all.get(0), PtxType.U32);
            at = new Operand.Vector(all.subList(1, all.size()));
        }
        List<Src> coordinates = TextureRules.coordinates(l, at, geometry, PtxType.U32);
        if (layer != null) {
            coordinates.set(2, layer);
        }
        return new Place(surface, coordinates, bytes, Outside.valueOf(mode.toUpperCase(java.util.Locale.ROOT)));
    }

    private static List<Operand> elements(Lowering l, Operand operand, int vector) throws PtxException {
        // A single element may stand in braces.
        return vector == 1 && operand instanceof Operand.Vector v && v.elements().size() == 1 ? v.elements()
            : MemoryRules.elements(l, operand, vector);
    }

    /** Computes the address into a JVM local. */
    private static int pushed(Gen g, Place place) {
        int at = g.newLocal(2);
        place.push(g);
        g.cb.lstore(at);
        return at;
    }

    /** Pushes the address of an element; the 0 of an access without effect stays 0. */
    private static void pushElement(Gen g, int at, int offset) {
        g.cb.lload(at);
        if (offset != 0) {
            g.push(offset);
            g.call("SurfaceUnit", "element", "JJI");
        }
    }
}
