package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.Function;
import io.hawser.gpu.software.ptx.Operand;
import io.hawser.gpu.software.ptx.PtxException;
import io.hawser.gpu.software.ptx.PtxType;
import io.hawser.gpu.software.ptx.Statement;
import io.hawser.gpu.software.ptx.Variable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Lowers calls. A function that waits for other threads is expanded in place; each other function becomes a JVM method.
 * An indirect call compares the address with those of all functions that have its shape.
 */
final class CallRules {
    /** Begins the names of the functions of libcudadevrt, with which kernels launch kernels. */
    static final String LAUNCHING = "__cudaCDP2";
    private static final String PER_THREAD = "_ptsz";
    /**
     * Functions of the device runtime, with their JVM signature after slot, thread and globals. An argument of type
     * dim3 is its offset in local memory.
     */
    static final Map<String, String> BUILT_IN = builtIns();

    private CallRules() {
    }

    private static Map<String, String> builtIns() {
        Map<String, String> result = new HashMap<>(Map.of("vprintf", "IJJ", "__assertfail", "VJJIJJ", "malloc", "JJ",
            "free", "VJ", "cudaGraphSetConditional", "VJI"));
        Map<String, String> launching = Map.ofEntries(Map.entry("GetParameterBuffer", "JJJ"),
            Map.entry("GetParameterBufferV2", "JJIII"), Map.entry("LaunchDevice", "IJJIIIJ"),
            Map.entry("LaunchDeviceV2", "IJJ"), Map.entry("GetLastError", "I"), Map.entry("PeekAtLastError", "I"),
            Map.entry("StreamCreateWithFlags", "IJI"), Map.entry("StreamDestroy", "IJ"),
            Map.entry("StreamWaitEvent", "IJJI"), Map.entry("EventCreateWithFlags", "IJI"),
            Map.entry("EventRecord", "IJJ"), Map.entry("EventRecordWithFlags", "IJJI"), Map.entry("EventDestroy", "IJ"),
            Map.entry("MemcpyAsync", "IJJJIJ"), Map.entry("MemsetAsync", "IJIJJ"), Map.entry("Malloc", "IJJ"),
            Map.entry("Free", "IJ"));
        launching.forEach((name, signature) -> {
            result.put(LAUNCHING + name, signature);
            // The variants for programs whose default stream belongs to a thread.
            result.put(LAUNCHING + name + PER_THREAD, signature);
        });
        return Map.copyOf(result);
    }

    static void lower(Lowering l, Statement.Call call) throws PtxException {
        Block after = l.guarded(call.guard());
        if (call.target() instanceof Operand.Name name) {
            Function declared = l.at.function.scope().function(name.name());
            if (declared == null) {
                throw l.invalid("function must be declared: " + name.name());
            }
            if (declared.entry()) {
                throw PtxException.unsupported(call.line(), "call of a kernel: " + name.name());
            }
            if (declared.prototype() == null) {
                throw PtxException.unsupported(call.line(), "call " + name.name());
            }
            check(l, call, declared.prototype());
            if (declared.body() == null && BUILT_IN.containsKey(name.name())) {
                builtIn(l, call, name.name());
            } else {
                FunctionRef function = l.link.resolve(l.at.function.scope(), name.name());
                if (function != null) {
                    direct(l, call, function);
                }
            }
        } else {
            check(l, call, call.prototype());
            indirect(l, call);
        }
        if (after != null) {
            l.jump(after);
            l.start(after);
        }
    }

    private static void check(Lowering l, Statement.Call call, Statement.Prototype prototype) throws PtxException {
        if (call.arguments().size() != prototype.params().size()
            || call.returns().size() != prototype.returns().size()) {
            throw l.invalid("call must match the function's shape: arguments=" + call.arguments().size() + " of "
                + prototype.params().size() + " results=" + call.returns().size() + " of "
                + prototype.returns().size());
        }
        for (int k = 0; k < call.arguments().size(); k++) {
            argument(l, call.arguments().get(k), prototype.params().get(k));
        }
        for (int k = 0; k < call.returns().size(); k++) {
            result(l, call.returns().get(k), prototype.returns().get(k));
        }
    }

    private static Src argument(Lowering l, Operand operand, Variable formal) throws PtxException {
        if (operand instanceof Operand.Local local && l.at.params.containsKey(local.variable())) {
            Activation.Place place = l.at.params.get(local.variable());
            if ((place.scalar() == null) != formal.array() || local.offset() != 0
                || local.variable().bytes() != formal.bytes()) {
                throw PtxException.unsupported(l.line, "argument of another shape than the parameter: "
                    + local.variable());
            }
            return place.scalar() != null ? Src.of(place.scalar()) : place.base();
        }
        if (formal.array()) {
            throw l.invalid("argument must be a parameter variable: " + formal);
        }
        return l.source(operand, formal.type());
    }

    private static Activation.Place result(Lowering l, Operand operand, Variable formal) throws PtxException {
        if (operand instanceof Operand.Local local && l.at.params.containsKey(local.variable())) {
            Activation.Place place = l.at.params.get(local.variable());
            if ((place.scalar() == null) != formal.array() || local.variable().bytes() != formal.bytes()) {
                throw PtxException.unsupported(l.line, "result of another shape than the function's: "
                    + local.variable());
            }
            return place;
        }
        if (operand instanceof Operand.Register && !formal.array()) {
            return new Activation.Place(l.target(operand, formal.type()), null);
        }
        throw l.invalid("result must go to a parameter variable: " + formal);
    }

    private static void builtIn(Lowering l, Statement.Call call, String name) throws PtxException {
        String signature = BUILT_IN.get(name);
        int count = signature.length() - 1;
        boolean returns = signature.charAt(0) != 'V';
        if (call.arguments().size() != count || call.returns().size() != (returns ? 1 : 0)) {
            throw l.invalid("call of " + name + " must have " + count + " arguments");
        }
        Ins ins = new Ins(call.line());
        List<Src> args = new ArrayList<>();
        for (int k = 0; k < count; k++) {
            PtxType type = signature.charAt(k + 1) == 'J' ? PtxType.U64 : PtxType.U32;
            Src src;
            if (call.arguments().get(k) instanceof Operand.Local local
                && l.at.params.get(local.variable()) instanceof Activation.Place place && place.scalar() != null) {
                src = Src.of(place.scalar());
            } else {
                src = l.source(call.arguments().get(k), type);
            }
            args.add(src);
            ins.use(src, type);
        }
        PtxType type = signature.charAt(0) == 'J' ? PtxType.U64 : PtxType.U32;
        VReg target = null;
        if (returns) {
            target = call.returns().get(0) instanceof Operand.Local local
                ? l.at.params.get(local.variable()).scalar() : l.target(call.returns().get(0), type);
            if (target == null) {
                throw l.invalid("result of " + name + " must be a scalar");
            }
            ins.def(target, type);
        }
        VReg to = target;
        ins.calls = true;
        l.add(ins.emits(g -> {
            g.globals();
            g.slot();
            g.thread();
            for (int k = 0; k < count; k++) {
                g.push(args.get(k), signature.charAt(k + 1) == 'J' ? PtxType.U64 : PtxType.U32);
            }
            String shape = signature.charAt(0) + "GCI" + signature.substring(1);
            if (name.startsWith(LAUNCHING)) {
                String function = name.substring(LAUNCHING.length()).replace(PER_THREAD, "");
                g.call("DeviceRuntime", Character.toLowerCase(function.charAt(0)) + function.substring(1), shape);
            } else {
                g.call("Builtins", name.replace("__", ""), shape);
            }
            if (to != null) {
                g.pop(to, type);
            }
        }));
    }

    private static void direct(Lowering l, Statement.Call call, FunctionRef function) throws PtxException {
        Statement.Prototype prototype = function.function().prototype();
        check(l, call, prototype);
        if (l.link.mustExpand(function)) {
            expand(l, call, function);
            return;
        }
        Ins ins = new Ins(call.line());
        List<Src> args = new ArrayList<>();
        List<PtxType> types = new ArrayList<>();
        for (int k = 0; k < call.arguments().size(); k++) {
            Variable formal = prototype.params().get(k);
            args.add(argument(l, call.arguments().get(k), formal));
            types.add(formal.array() ? PtxType.U32 : formal.type());
        }
        VReg target = null;
        PtxType targetType = null;
        for (int k = 0; k < call.returns().size(); k++) {
            Variable formal = prototype.returns().get(k);
            Activation.Place place = result(l, call.returns().get(k), formal);
            if (place.scalar() == null) {
                args.add(place.base());
                types.add(PtxType.U32);
            } else {
                target = place.scalar();
                targetType = formal.type();
            }
        }
        for (int k = 0; k < args.size(); k++) {
            ins.use(args.get(k), types.get(k));
        }
        if (target != null) {
            ins.def(target, targetType);
        }
        VReg to = target;
        PtxType type = targetType;
        ins.calls = true;
        l.add(ins.emits(g -> {
            g.slot();
            g.thread();
            g.frame((g.code.frameBytes + 15L) / 16 * 16);
            for (int k = 0; k < args.size(); k++) {
                g.push(args.get(k), types.get(k));
            }
            g.placement.invoke(g, function);
            if (to != null) {
                g.pop(to, type);
            }
        }));
    }

    private static void expand(Lowering l, Statement.Call call, FunctionRef function) throws PtxException {
        if (l.at.isActive(function)) {
            throw PtxException.unsupported(call.line(), "recursion through a function that waits for other threads: "
                + function.name());
        }
        Activation caller = l.at;
        Activation inner = new Activation(function, caller);
        Statement.Prototype prototype = function.function().prototype();
        for (int k = 0; k < call.arguments().size(); k++) {
            Variable formal = prototype.params().get(k);
            Src actual = argument(l, call.arguments().get(k), formal);
            if (formal.array()) {
                inner.params.put(formal, new Activation.Place(null, actual));
            } else {
                VReg scalar = l.code.register(formal.name(), formal.type());
                inner.params.put(formal, new Activation.Place(scalar, null));
                Ins copy = new Ins(call.line()).use(actual, formal.type()).def(scalar, formal.type());
                if (actual instanceof Src.R r) {
                    copy.copyOf = r.reg();
                }
                l.add(copy.emits(g -> {
                    g.push(actual, formal.type());
                    g.pop(scalar, formal.type());
                }));
            }
        }
        for (int k = 0; k < call.returns().size(); k++) {
            inner.params.put(prototype.returns().get(k), result(l, call.returns().get(k), prototype.returns().get(k)));
        }
        inner.continuation = l.code.block();
        l.at = inner;
        l.body(function.function());
        l.at = caller;
        l.line = call.line();
        l.start(inner.continuation);
    }

    private static void indirect(Lowering l, Statement.Call call) throws PtxException {
        Src target = l.source(call.target(), PtxType.U64);
        Block done = l.code.block();
        for (FunctionRef candidate : l.link.candidates(call.prototype())) {
            VReg same = l.temporary(PtxType.PRED);
            Src address = new Src.Symbol(candidate.scope(), candidate.name(), 0);
            l.add(new Ins(call.line()).use(target, PtxType.U64).def(same, PtxType.PRED).emits(g -> {
                g.push(target, PtxType.U64);
                g.push(address, PtxType.U64);
                g.call("Builtins", "same", "IJJ");
                g.pop(same, PtxType.PRED);
            }));
            Block inside = l.code.block();
            Block next = l.code.block();
            l.end(new Block.Term.Branch(same, false, inside, next));
            l.start(inside);
            direct(l, call, candidate);
            l.jump(done);
            l.start(next);
        }
        l.add(new Ins(call.line()).use(target, PtxType.U64).emits(g -> {
            g.push(target, PtxType.U64);
            g.call("Builtins", "noFunction", "VJ");
        }));
        l.end(new Block.Term.Never());
        l.start(done);
    }
}
