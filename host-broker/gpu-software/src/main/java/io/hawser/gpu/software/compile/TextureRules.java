package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.exec.TextureUnit.Geometry;
import io.hawser.gpu.software.ptx.Operand;
import io.hawser.gpu.software.ptx.PtxException;
import io.hawser.gpu.software.ptx.PtxType;
import io.hawser.gpu.software.ptx.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Lowers tex, tld4 and txq. */
final class TextureRules {
    private static final List<String> CHANNELS = List.of("r", "g", "b", "a");
    private static final List<String> QUERIES = List.of("width", "height", "depth", "array_size",
        "num_mipmap_levels");
    // Signatures of TextureUnit's methods up to the offsets: globals, slot, texture, geometry, layer.
    private static final String FETCH = "VGCJII";
    private static final String OFFSETS = "III";
    /** Most of a texel offset in each direction, PTX ISA 9.0, tex. */
    private static final int MAX_OFFSET = 8;

    /** Values to push after the offsets, of one type. */
    private record More(List<Src> values, PtxType type) {
        static final More NONE = new More(List.of(), PtxType.U32);
    }

    private TextureRules() {
    }

    static void register(Map<String, Lowering.Rule> rules) {
        rules.put("tex", TextureRules::tex);
        rules.put("tld4", TextureRules::tld4);
        rules.put("txq", TextureRules::txq);
    }

    private static void tex(Lowering l, Statement.Instruction i) throws PtxException {
        List<String> words = new ArrayList<>(i.modifiers());
        String level = words.removeIf("level"::equals) ? "level" : words.removeIf("grad"::equals) ? "grad" : "base";
        words.removeIf("base"::equals);
        // Geometry, v4, type of the result, type of the coordinates.
        Geometry geometry = words.size() == 4 ? Geometry.of(words.get(0)) : null;
        PtxType coordinates = geometry == null ? null : PtxType.byName(words.get(3));
        boolean indexes = coordinates == PtxType.S32;
        if (geometry == null || !indexes && coordinates != PtxType.F32
            || geometry.cube() && (indexes || level.equals("grad")) || indexes && level.equals("grad")) {
            throw l.unsupported(i);
        }
        PtxType type = resultType(l, i, words.get(1), words.get(2));
        int more = level.equals("level") ? 1 : level.equals("grad") ? 2 : 0;
        l.operands(i, 2 + more, 3 + more);
        List<Operand> operands = i.operands();
        More values = switch (level) {
            case "level" -> new More(List.of(l.source(operands.get(2), coordinates)), coordinates);
            case "grad" -> new More(gradients(l, operands, geometry), coordinates);
            default -> indexes ? new More(List.of(Src.of(0)), coordinates) : More.NONE;
        };
        String method = indexes ? "fetchTexel" : level.equals("level") ? "fetchLevel"
            : level.equals("grad") ? "fetchGradient" : "fetch";
        Operand offsets = operands.size() > 2 + more ? operands.get(2 + more) : null;
        fetch(l, i, method, geometry, type, coordinates, offsets, values);
    }

    private static List<Src> gradients(Lowering l, List<Operand> operands, Geometry geometry) throws PtxException {
        List<Src> result = new ArrayList<>(coordinates(l, operands.get(2), geometry, PtxType.F32));
        result.addAll(coordinates(l, operands.get(3), geometry, PtxType.F32));
        return result;
    }

    private static void tld4(Lowering l, Statement.Instruction i) throws PtxException {
        List<String> words = i.modifiers();
        boolean complete = words.size() == 5 && CHANNELS.contains(words.get(0)) && words.get(4).equals("f32");
        Geometry geometry = complete ? Geometry.of(words.get(1)) : null;
        if (geometry != Geometry.TWO && geometry != Geometry.TWO_LAYERED) {
            throw l.unsupported(i);
        }
        PtxType type = resultType(l, i, words.get(2), words.get(3));
        l.operands(i, 2, 3);
        fetch(l, i, "gather", geometry, type, PtxType.F32, i.operands().size() > 2 ? i.operands().get(2) : null,
            new More(List.of(Src.of(CHANNELS.indexOf(words.get(0)))), PtxType.U32));
    }

    /** The type of the result's words: the texture's format decides what they hold. */
    private static PtxType resultType(Lowering l, Statement.Instruction i, String vector, String name)
        throws PtxException {
        PtxType type = PtxType.byName(name);
        if (!vector.equals("v4") || type != PtxType.F32 && type != PtxType.U32 && type != PtxType.S32) {
            throw l.unsupported(i);
        }
        return type;
    }

    private static void fetch(Lowering l, Statement.Instruction i, String method, Geometry geometry, PtxType type,
        PtxType coordinateType, Operand offsets, More more) throws PtxException {
        Operand results = i.operands().get(0) instanceof Operand.Pair pair ? pair.first() : i.operands().get(0);
        List<VReg> targets = new ArrayList<>();
        for (Operand operand : MemoryRules.elements(l, results, 4)) {
            targets.add(l.target(operand, type));
        }
        // Whether the texel is in memory: always, because there are no sparse arrays.
        VReg resident = i.operands().get(0) instanceof Operand.Pair pair ? l.target(pair.second(), PtxType.PRED) : null;
        Operand.Texel texel = texel(l, i.operands().get(1));
        Src texture = l.source(texel.object(), PtxType.U64);
        Src layer = Src.of(0);
        Operand at = texel.at();
        if (geometry.layered()) {
            List<Operand> all = at instanceof Operand.Vector v ? v.elements() : List.of(at);
            layer = l.source(all.get(0), PtxType.U32);
            at = new Operand.Vector(all.subList(1, all.size()));
        }
        List<Src> coordinates = coordinates(l, at, geometry, coordinateType);
        int[] offset = offsets(l, i, geometry, offsets);
        Ins ins = l.ins(i).use(texture, PtxType.U64).use(layer, PtxType.U32);
        coordinates.forEach(c -> ins.use(c, coordinateType));
        more.values.forEach(v -> ins.use(v, more.type));
        targets.forEach(t -> ins.def(t, type));
        if (resident != null) {
            ins.def(resident, PtxType.PRED);
        }
        ins.calls = true; // costs as much as a function
        Src ofLayer = layer;
        l.add(i, ins.emits(g -> {
            g.globals();
            g.slot();
            g.push(texture, PtxType.U64);
            g.push(geometry.ordinal());
            g.push(ofLayer, PtxType.U32);
            coordinates.forEach(c -> g.push(c, coordinateType));
            for (int part : offset) {
                g.push(part);
            }
            more.values.forEach(v -> g.push(v, more.type));
            g.call("TextureUnit", method, FETCH + (coordinateType.jvm() + "").repeat(coordinates.size()) + OFFSETS
                + (more.type.jvm() + "").repeat(more.values.size()));
            for (int channel = 0; channel < targets.size(); channel++) {
                g.slot();
                g.push(channel);
                g.call("TextureUnit", "result", "ICI");
                g.pop(targets.get(channel), PtxType.B32);
            }
            if (resident != null) {
                g.push(1);
                g.pop(resident, PtxType.PRED);
            }
        }));
    }

    static Operand.Texel texel(Lowering l, Operand operand) throws PtxException {
        if (operand instanceof Operand.Texel texel) {
            return texel;
        }
        throw l.invalid("a texture or surface must stand in brackets with its coordinates");
    }

    /** Three coordinates; 0 where the geometry has fewer. PTX lets a vector be longer than the geometry needs. */
    static List<Src> coordinates(Lowering l, Operand operand, Geometry geometry, PtxType type) throws PtxException {
        List<Operand> given = operand instanceof Operand.Vector v ? v.elements() : List.of(operand);
        if (given.size() < geometry.dimensions() || given.size() > 4) {
            throw l.invalid("coordinates must match the geometry: given=" + given.size() + " needed="
                + geometry.dimensions());
        }
        List<Src> result = new ArrayList<>();
        for (int k = 0; k < 3; k++) {
            result.add(k < geometry.dimensions() ? l.source(given.get(k), type) : type == PtxType.F32
                ? new Src.Fp(0, false) : Src.of(0));
        }
        return result;
    }

    private static int[] offsets(Lowering l, Statement.Instruction i, Geometry geometry, Operand operand)
        throws PtxException {
        int[] result = new int[3];
        if (operand == null) {
            return result;
        }
        List<Operand> given = operand instanceof Operand.Vector v ? v.elements() : List.of(operand);
        for (int k = 0; k < Math.min(given.size(), geometry.dimensions()); k++) {
            // A register here is an offset as well, or the reference value of a comparison of depths.
            if (geometry.cube() || !(given.get(k) instanceof Operand.IntImm constant) || constant.value() < -MAX_OFFSET
                || constant.value() >= MAX_OFFSET) {
                throw PtxException.unsupported(l.line, i.spelling() + " with an offset or reference value");
            }
            result[k] = (int) constant.value();
        }
        return result;
    }

    private static void txq(Lowering l, Statement.Instruction i) throws PtxException {
        List<String> words = new ArrayList<>(i.modifiers());
        boolean hasLevel = words.remove("level");
        if (words.size() != 2 || !QUERIES.contains(words.get(0)) || !words.get(1).equals("b32")) {
            throw l.unsupported(i);
        }
        l.operands(i, hasLevel ? 3 : 2, hasLevel ? 3 : 2);
        VReg target = l.target(i.operands().get(0), PtxType.B32);
        if (!(i.operands().get(1) instanceof Operand.Address address) || address.offset() != 0) {
            throw l.invalid("a texture must stand in brackets");
        }
        Src texture = l.source(address.base(), PtxType.U64);
        Src level = hasLevel ? l.source(i.operands().get(2), PtxType.U32) : Src.of(0);
        int query = QUERIES.indexOf(words.get(0));
        l.add(i, l.ins(i).use(texture, PtxType.U64).use(level, PtxType.U32).def(target, PtxType.B32).emits(g -> {
            g.globals();
            g.push(texture, PtxType.U64);
            g.push(query);
            g.push(level, PtxType.U32);
            g.call("TextureUnit", "query", "IGJII");
            g.pop(target, PtxType.B32);
        }));
    }
}
