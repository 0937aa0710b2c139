package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.Operand;
import io.hawser.gpu.software.ptx.PtxException;
import io.hawser.gpu.software.ptx.PtxType;
import io.hawser.gpu.software.ptx.Statement;
import io.hawser.gpu.software.ptx.Variable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Lowers ld, st and the other instructions that move memory without changing it. */
final class MemoryRules {
    /** The state space of an access. */
    enum Space { GENERIC, GLOBAL, SHARED, LOCAL, PARAM }

    // Hints to caches, and orderings that sequential threads always have.
    private static final Set<String> IGNORED = Set.of("weak", "nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "cta",
        "cluster", "gpu", "sys", "unified", "mmio");
    private static final Set<String> ORDERED = Set.of("volatile", "relaxed", "acquire", "release");

    /** The parsed modifiers. */
    record Shape(Space space, PtxType type, int vector, boolean ordered, boolean hint) {}

    private MemoryRules() {
    }

    static void register(Map<String, Lowering.Rule> rules) {
        rules.put("ld", MemoryRules::ld);
        rules.put("ldu", MemoryRules::ld);
        rules.put("st", MemoryRules::st);
        rules.put("cp", MemoryRules::cp);
        for (String hint : List.of("prefetch", "prefetchu", "applypriority", "discard", "createpolicy")) {
            rules.put(hint, MemoryRules::hint);
        }
    }

    static Space space(Lowering l, Statement.Instruction i, String word) throws PtxException {
        return switch (word) {
            case "global", "const" -> Space.GLOBAL;
            case "shared", "shared::cta" -> Space.SHARED;
            case "local" -> Space.LOCAL;
            case "param", "param::entry", "param::func" -> Space.PARAM;
            case "shared::cluster" -> throw l.unsupported(i);
            default -> null;
        };
    }

    private static Shape shape(Lowering l, Statement.Instruction i) throws PtxException {
        Space space = Space.GENERIC;
        PtxType type = null;
        int vector = 1;
        boolean ordered = false;
        boolean hint = false;
        for (String word : i.modifiers()) {
            Space named = space(l, i, word);
            if (named != null) {
                space = named;
            } else if (PtxType.byName(word) != null) {
                type = PtxType.byName(word);
            } else if (word.matches("v[248]")) {
                vector = word.charAt(1) - '0';
            } else if (ORDERED.contains(word)) {
                ordered = true;
            } else if (word.equals("L2::cache_hint")) {
                hint = true;
            } else if (!IGNORED.contains(word) && !word.startsWith("L1::") && !word.startsWith("L2::")) {
                throw l.unsupported(i);
            }
        }
        if (type == null || type == PtxType.PRED || type.bits() > 64 || type.ptxName().contains("x2")
            || vector * type.bytes() > 32) {
            throw l.unsupported(i);
        }
        return new Shape(space, type, vector, ordered, hint);
    }

    /** The suffix of the access methods of a type in {@link Mem}, {@link Window} and {@link RawMem}. */
    static String suffix(PtxType type, boolean store) {
        return switch (type.bits()) {
            case 8 -> type.signed() && !store ? "S8" : "U8";
            case 16 -> type.signed() && !store ? "S16" : "U16";
            case 32 -> type == PtxType.F32 ? "F32" : "32";
            default -> type == PtxType.F64 ? "F64" : "64";
        };
    }

    static List<Operand> elements(Lowering l, Operand operand, int count) throws PtxException {
        List<Operand> elements = operand instanceof Operand.Vector v ? v.elements() : List.of(operand);
        if (elements.size() != count || operand instanceof Operand.Vector != count > 1) {
            throw l.invalid("vector must have " + count + " elements: " + elements.size());
        }
        return elements;
    }

    private static void ld(Lowering l, Statement.Instruction i) throws PtxException {
        Shape shape = shape(l, i);
        l.operands(i, shape.hint() ? 3 : 2, shape.hint() ? 3 : 2);
        List<Operand> to = elements(l, i.operands().get(0), shape.vector());
        Variable variable = Address.variable(i.operands().get(1));
        if (shape.space() == Space.PARAM && variable != null && parameter(l, i, shape, variable, to)) {
            return;
        }
        List<VReg> targets = new ArrayList<>();
        for (Operand operand : to) {
            targets.add(l.target(operand, shape.type()));
        }
        Address address = Address.of(l, i.operands().get(1));
        Ins ins = l.ins(i);
        address.use(ins);
        targets.forEach(t -> ins.def(t, shape.type()));
        Space space = effective(l, shape.space(), variable);
        needs(ins, space);
        ins.spins = shape.ordered();
        l.add(i, ins.emits(g -> {
            load(g, shape, space, address, targets);
            if (shape.ordered()) {
                g.call("Mem", "acquire", "V");
            }
        }));
    }

    /** Parameters of functions and calls that need memory lie in local memory. */
    private static Space effective(Lowering l, Space space, Variable variable) {
        boolean kernels = l.at.function.function().entry() && !l.at.params.containsKey(variable);
        return space == Space.PARAM && !kernels ? Space.LOCAL : space;
    }

    static void needs(Ins ins, Space space) {
        ins.needsShared = space == Space.SHARED;
        ins.needsLocal = space == Space.LOCAL;
    }

    static void window(Gen g, Space space) {
        switch (space) {
            case SHARED -> g.shared();
            case LOCAL -> g.localMemory();
            default -> g.ints("params");
        }
    }

    private static int log2(int value) {
        return 31 - Integer.numberOfLeadingZeros(value);
    }

    private static void load(Gen g, Shape shape, Space space, Address address, List<VReg> targets) {
        PtxType type = shape.type();
        String name = "ld" + suffix(type, false);
        int bytes = type.bytes() * shape.vector();
        if (space == Space.GLOBAL || space == Space.GENERIC) {
            if (shape.vector() == 1) {
                globalAccess(g, space, name, type.jvm() + "", () -> address.pushLong(g));
                g.pop(targets.get(0), type);
                return;
            }
            int at = longTemporary(g, space, address, bytes);
            for (int k = 0; k < shape.vector(); k++) {
                int offset = k * type.bytes();
                vectorAccess(g, space, name, type.jvm() + "", at, offset);
                g.pop(targets.get(k), type);
            }
            return;
        }
        int at = -1;
        int words = 0;
        if (shape.vector() > 1) {
            words = address.pushBase(g);
            at = intTemporary(g, words, bytes);
        }
        for (int k = 0; k < shape.vector(); k++) {
            window(g, space);
            pushElement(g, address, at, words, k * type.bytes());
            g.call("Window", name, type.jvm() + "AII");
            g.pop(targets.get(k), type);
        }
    }

    /** Pushes base and words of an element in a window; {@code at} is the JVM local of a vector's base, or -1. */
    private static void pushElement(Gen g, Address address, int at, int words, int offset) {
        if (at < 0) {
            g.push(address.pushBase(g));
        } else if (offset % 4 == 0) {
            g.cb.iload(at);
            g.push(words + offset / 4);
        } else {
            g.cb.iload(at);
            g.push(offset);
            g.cb.iadd();
            g.push(words);
        }
    }

    private static int intTemporary(Gen g, int words, int bytes) {
        int at = g.newLocal(1);
        g.cb.istore(at);
        g.cb.iload(at);
        g.push(words * 4);
        g.cb.iadd();
        g.push(bytes - 1);
        g.call("Window", "vector", "III");
        g.cb.pop();
        return at;
    }

    private static int longTemporary(Gen g, Space space, Address address, int bytes) {
        int at = g.newLocal(2);
        address.pushLong(g);
        g.cb.lstore(at);
        if (space == Space.GLOBAL) {
            g.globals();
            g.cb.lload(at);
            g.push(log2(bytes));
            g.call("Mem", "vector", "JGJI");
            g.cb.pop2();
        } else {
            g.cb.lload(at);
            g.push(bytes);
            g.call("Mem", "aligned", "VJI");
        }
        return at;
    }

    private static void globalAccess(Gen g, Space space, String name, String result, Runnable address) {
        g.globals();
        if (space == Space.GENERIC) {
            g.slot();
            g.thread();
        }
        address.run();
        g.call("Mem", name, result + (space == Space.GENERIC ? "GCIJ" : "GJ"));
    }

    private static void vectorAccess(Gen g, Space space, String name, String result, int at, int offset) {
        if (space == Space.GENERIC) {
            globalAccess(g, space, name, result, () -> pushOffset(g, at, offset));
        } else {
            pushOffset(g, at, offset);
            g.call("RawMem", name, result + "J");
        }
    }

    private static void pushOffset(Gen g, int at, int offset) {
        g.cb.lload(at);
        if (offset != 0) {
            g.push((long) offset);
            g.cb.ladd();
        }
    }

    /**
     * Handles a parameter named directly: checks a kernel's; a call's scalar parameter is a register. True if handled.
     */
    private static boolean parameter(Lowering l, Statement.Instruction i, Shape shape, Variable variable,
        List<Operand> to) throws PtxException {
        Activation.Place place = l.at.params.get(variable);
        long offset = offset(i.operands().get(1));
        checkParameter(l, shape, variable, offset);
        if (place == null || place.scalar() == null) {
            return false;
        }
        scalarAccess(l, shape, variable, offset);
        VReg target = l.target(to.get(0), shape.type());
        MoveRules.copy(l, i, target, Src.of(place.scalar()), shape.type());
        return true;
    }

    private static long offset(Operand operand) {
        Operand.Address address = (Operand.Address) operand;
        return address.offset() + (address.base() instanceof Operand.Local local ? local.offset() : 0);
    }

    private static void checkParameter(Lowering l, Shape shape, Variable variable, long offset) throws PtxException {
        if (variable.space() == Variable.Space.PARAM && (offset < 0
            || offset + (long) shape.vector() * shape.type().bytes() > variable.bytes())) {
            throw l.invalid("access must lie inside the parameter: " + variable + " offset=" + offset);
        }
    }

    private static void scalarAccess(Lowering l, Shape shape, Variable variable, long offset) throws PtxException {
        if (offset != 0 || shape.vector() != 1) {
            throw PtxException.unsupported(l.line, "access to a part of a scalar parameter: " + variable);
        }
    }

    private static void st(Lowering l, Statement.Instruction i) throws PtxException {
        Shape shape = shape(l, i);
        l.operands(i, shape.hint() ? 3 : 2, shape.hint() ? 3 : 2);
        PtxType type = shape.type();
        List<Src> values = new ArrayList<>();
        for (Operand operand : elements(l, i.operands().get(1), shape.vector())) {
            values.add(l.source(operand, type));
        }
        Variable variable = Address.variable(i.operands().get(0));
        if (shape.space() == Space.PARAM && variable != null) {
            long offset = offset(i.operands().get(0));
            checkParameter(l, shape, variable, offset);
            Activation.Place place = l.at.params.get(variable);
            if (place == null) {
                throw l.invalid("a kernel's parameter must not be written: " + variable);
            }
            if (place.scalar() != null) {
                scalarAccess(l, shape, variable, offset);
                MoveRules.copy(l, i, place.scalar(), values.get(0), type);
                return;
            }
        }
        Address address = Address.of(l, i.operands().get(0));
        Ins ins = l.ins(i);
        address.use(ins);
        values.forEach(v -> ins.use(v, type));
        // Only parameters of calls are written; they lie in local memory.
        Space space = shape.space() == Space.PARAM ? Space.LOCAL : shape.space();
        needs(ins, space);
        ins.spins = shape.ordered();
        l.add(i, ins.emits(g -> {
            if (shape.ordered()) {
                g.call("Mem", "release", "V");
            }
            store(g, shape, space, address, values);
        }));
    }

    // A computed NaN is stored as an integer, so that memory receives PTX's bits.
    private static PtxType stored(Src value, PtxType type) {
        return type == PtxType.F32 && value instanceof Src.R r && (r.reg().jvm != 'F' || r.reg().computesFloats())
            ? PtxType.B32 : type;
    }

    private static void store(Gen g, Shape shape, Space space, Address address, List<Src> values) {
        int bytes = shape.type().bytes() * shape.vector();
        int at = -1;
        int words = 0;
        boolean global = space == Space.GLOBAL || space == Space.GENERIC;
        if (shape.vector() > 1) {
            if (global) {
                at = longTemporary(g, space, address, bytes);
            } else {
                words = address.pushBase(g);
                at = intTemporary(g, words, bytes);
            }
        }
        for (int k = 0; k < shape.vector(); k++) {
            PtxType type = stored(values.get(k), shape.type());
            String name = "st" + suffix(type, true);
            int offset = k * shape.type().bytes();
            if (!global) {
                window(g, space);
                pushElement(g, address, at, words, offset);
                g.push(values.get(k), type);
                g.call("Window", name, "VAII" + type.jvm());
                continue;
            }
            boolean raw = space == Space.GLOBAL && shape.vector() > 1;
            if (!raw) {
                g.globals();
            }
            if (space == Space.GENERIC) {
                g.slot();
                g.thread();
            }
            if (at < 0) {
                address.pushLong(g);
            } else {
                pushOffset(g, at, offset);
            }
            g.push(values.get(k), type);
            g.call(raw ? "RawMem" : "Mem", name,
                (raw ? "VJ" : space == Space.GENERIC ? "VGCIJ" : "VGJ") + type.jvm());
        }
    }

    private static void hint(Lowering l, Statement.Instruction i) throws PtxException {
        if (i.op().equals("createpolicy")) {
            l.operands(i, 1, 4);
            VReg target = l.target(i.operands().get(0), PtxType.B64);
            MoveRules.copy(l, i, target, Src.of(0), PtxType.B64);
        } else if (i.op().equals("discard") && !i.modifiers().contains("L2")) {
            throw l.unsupported(i);
        }
    }

    /** cp.async: copies at once; the instructions that wait for the copies do nothing. */
    private static void cp(Lowering l, Statement.Instruction i) throws PtxException {
        List<String> words = i.modifiers();
        if (words.isEmpty() || !words.getFirst().equals("async")
            || words.contains("bulk") || words.contains("mbarrier")) {
            throw l.unsupported(i);
        }
        if (words.contains("commit_group") || words.contains("wait_group") || words.contains("wait_all")) {
            return;
        }
        boolean toShared = words.contains("shared") || words.contains("shared::cta");
        if (!toShared || !words.contains("global")) {
            throw l.unsupported(i);
        }
        boolean hint = words.contains("L2::cache_hint");
        l.operands(i, hint ? 4 : 3, hint ? 5 : 4);
        Address to = Address.of(l, i.operands().get(0));
        Address from = Address.of(l, i.operands().get(1));
        if (!(i.operands().get(2) instanceof Operand.IntImm size) || size.value() != 4 && size.value() != 8
            && size.value() != 16) {
            throw l.invalid("cp.async must copy 4, 8 or 16 bytes");
        }
        boolean partial = i.operands().size() > (hint ? 4 : 3);
        if (partial && i.operands().get(3) instanceof Operand.Register r && r.reg().type() == PtxType.PRED) {
            throw l.unsupported(i);
        }
        Src bytes = partial ? l.source(i.operands().get(3), PtxType.U32) : Src.of(size.value());
        Ins ins = l.ins(i).use(bytes, PtxType.U32).shared();
        to.use(ins);
        from.use(ins);
        l.add(i, ins.emits(g -> {
            g.globals();
            from.pushLong(g);
            g.shared();
            int rest = to.pushBase(g);
            g.push(rest * 4);
            g.cb.iadd();
            g.push((int) size.value());
            g.push(bytes, PtxType.U32);
            g.call("Mem", "copyAsync", "VGJAIII");
        }));
    }
}
