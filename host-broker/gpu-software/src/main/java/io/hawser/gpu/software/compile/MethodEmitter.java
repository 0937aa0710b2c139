package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.PtxType;
import java.lang.classfile.Label;
import java.lang.classfile.Opcode;
import java.lang.classfile.instruction.SwitchCase;
import java.lang.constant.ConstantDescs;
import java.lang.constant.MethodTypeDesc;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Emits the blocks of a region or of a function as one method. */
final class MethodEmitter {
    private static final int POLL_INTERVAL = 1 << 16;

    private final Gen g;
    private final Code code;
    private final Liveness liveness;
    private final SavedSlots slots;
    private Regions regions;
    private Regions.Region region;
    private List<Block> order;
    private final Map<Block, Integer> position = new HashMap<>();
    private final Map<Block, Label> labels = new HashMap<>();
    private final BitSet defined = new BitSet();
    private final BitSet used = new BitSet();

    MethodEmitter(Gen g, Liveness liveness, SavedSlots slots) {
        this.g = g;
        this.code = g.code;
        this.liveness = liveness;
        this.slots = slots;
    }

    void region(Regions of, Regions.Region one) {
        regions = of;
        region = one;
        order = one.blocks;
        prepare();
        restore();
        blocks();
    }

    void function() {
        order = Order.reversePostorder(code.blocks.get(0), b -> true);
        g.frameLocal = g.newLocal(1);
        // Callers pass a parameter in its declared type; the body may hold its bits in another JVM type.
        int[] passed = new int[code.parameters.size()];
        for (int i = 0; i < passed.length; i++) {
            VReg parameter = code.parameters.get(i);
            passed[i] = parameter.jvm == parameter.type.jvm() ? g.local(parameter) : g.newLocal(parameter.width());
        }
        prepare();
        for (int i = 0; i < passed.length; i++) {
            VReg parameter = code.parameters.get(i);
            if (parameter.jvm != parameter.type.jvm()) {
                g.cb.loadLocal(Gen.kind(parameter.type.jvm()), passed[i]);
                g.pop(parameter, parameter.type);
            }
        }
        if (code.frameBytes > 0) {
            g.slot();
            g.thread();
            g.cb.iload(g.frameLocal);
            g.push(code.frameBytes);
            g.call("CtaSlot", "frame", "ICIII");
            g.cb.pop();
        }
        BitSet live = liveness.in(code.blocks.get(0));
        for (int id = live.nextSetBit(0); id >= 0; id = live.nextSetBit(id + 1)) {
            if (!code.parameters.contains(code.registers.get(id))) {
                zero(code.registers.get(id));
            }
        }
        blocks();
    }

    private void prepare() {
        boolean shared = false;
        boolean local = false;
        boolean loops = false;
        for (int i = 0; i < order.size(); i++) {
            position.put(order.get(i), i);
            labels.put(order.get(i), g.cb.newLabel());
        }
        for (Block block : order) {
            for (Ins ins : block.code) {
                shared |= ins.needsShared;
                local |= ins.needsLocal;
                ins.defs.forEach(r -> defined.set(r.id));
                ins.uses.forEach(r -> used.set(r.id));
            }
            block.termUses().forEach(r -> used.set(r.id));
            for (Block next : block.successors()) {
                loops |= inside(next) && position.get(next) <= position.get(block);
            }
        }
        if (shared) {
            g.sharedLocal = g.newLocal(1);
            g.ints("shared");
            g.cb.astore(g.sharedLocal);
        }
        if (local) {
            g.localLocal = g.newLocal(1);
            g.slot();
            g.cb.getfield(Gen.SLOT, "local", Gen.INTS.arrayType());
            g.thread();
            g.cb.aaload().astore(g.localLocal);
        }
        if (loops) {
            g.budgetLocal = g.newLocal(1);
            g.push(POLL_INTERVAL);
            g.cb.istore(g.budgetLocal);
        }
    }

    private boolean inside(Block next) {
        return region == null || !regions.leaves(region, next);
    }

    private void zero(VReg register) {
        switch (register.jvm) {
            case 'F' -> g.cb.fconst_0();
            case 'J' -> g.cb.lconst_0();
            case 'D' -> g.cb.dconst_0();
            default -> g.cb.iconst_0();
        }
        g.store(register);
    }

    /** Loads the registers that the region reads; at the kernel's start undefined registers are zero. */
    private void restore() {
        BitSet live = liveness.in(region.entry);
        for (int id = live.nextSetBit(0); id >= 0; id = live.nextSetBit(id + 1)) {
            VReg register = code.registers.get(id);
            if (region.number == 0) {
                zero(register);
            } else if (used.get(id) || defined.get(id)) {
                place(register);
                if (register.width() == 2) {
                    g.cb.laload();
                    g.convert(PtxType.B64, register.jvm == 'D' ? PtxType.F64 : PtxType.B64);
                } else {
                    g.cb.iaload();
                    g.convert(PtxType.B32, register.jvm == 'F' ? PtxType.F32 : PtxType.B32);
                }
                g.store(register);
            }
        }
    }

    /** Pushes the array and the index of a register's saved value. */
    private void place(VReg register) {
        boolean wide = register.width() == 2;
        g.slot();
        g.cb.getfield(Gen.SLOT, wide ? "savedLongs" : "savedInts", wide ? Gen.LONGS : Gen.INTS);
        g.thread();
        g.push(wide ? slots.longs : slots.ints);
        g.cb.imul();
        g.push(register.savedSlot);
        g.cb.iadd();
    }

    /** Saves the registers that the next region reads, except those that this region loaded and did not change. */
    private void save(Block next) {
        BitSet live = liveness.in(next);
        BitSet found = liveness.in(region.entry);
        for (int id = live.nextSetBit(0); id >= 0; id = live.nextSetBit(id + 1)) {
            if (region.number != 0 && found.get(id) && !defined.get(id)) {
                continue;
            }
            VReg register = code.registers.get(id);
            place(register);
            g.load(register);
            if (register.jvm == 'F') {
                g.cb.invokestatic(ConstantDescs.CD_Float, "floatToRawIntBits",
                    MethodTypeDesc.of(ConstantDescs.CD_int, ConstantDescs.CD_float));
            } else if (register.jvm == 'D') {
                g.cb.invokestatic(ConstantDescs.CD_Double, "doubleToRawLongBits",
                    MethodTypeDesc.of(ConstantDescs.CD_long, ConstantDescs.CD_double));
            }
            if (register.width() == 2) {
                g.cb.lastore();
            } else {
                g.cb.iastore();
            }
        }
    }

    private void blocks() {
        for (int i = 0; i < order.size(); i++) {
            Block block = order.get(i);
            g.cb.labelBinding(labels.get(block));
            for (Ins ins : block.code) {
                g.emit(ins);
            }
            end(block, i + 1 < order.size() ? order.get(i + 1) : null);
        }
    }

    private void end(Block block, Block following) {
        switch (block.term) {
            case Block.Term.Jump j -> jump(block, j.to(), following);
            case Block.Term.Branch b -> {
                boolean yesDirect = plain(block, b.yes());
                g.load(b.predicate());
                if (yesDirect) {
                    g.cb.branch(b.negated() ? Opcode.IFEQ : Opcode.IFNE, labels.get(b.yes()));
                    jump(block, b.no(), following);
                } else {
                    Label no = plain(block, b.no()) ? labels.get(b.no()) : g.cb.newLabel();
                    g.cb.branch(b.negated() ? Opcode.IFNE : Opcode.IFEQ, no);
                    jump(block, b.yes(), null);
                    if (no != labels.get(b.no())) {
                        g.cb.labelBinding(no);
                        jump(block, b.no(), following);
                    } else if (b.no() != following) {
                        // Execution cannot fall through: the branch to {@code yes} has left.
                        return;
                    }
                }
            }
            case Block.Term.Switch s -> indexed(block, s);
            case Block.Term.Suspend s -> {
                g.emit(s.op());
                save(s.next());
                g.push(~regions.of(s.next()).number);
                g.cb.ireturn();
            }
            case Block.Term.Exit e -> {
                g.slot();
                g.call("CtaSlot", "exit", "IC");
                g.cb.ireturn();
            }
            case Block.Term.Return r -> {
                if (code.returns == null) {
                    g.cb.return_();
                } else {
                    g.push(r.result(), code.returns);
                    g.cb.return_(Gen.kind(code.returns.jvm()));
                }
            }
            case Block.Term.Never n -> {
                // The JVM does not know that the preceding call throws.
                g.cb.aconst_null().athrow();
            }
        }
    }

    /** Whether an edge is a plain jump. */
    private boolean plain(Block from, Block to) {
        return inside(to) && position.get(to) > position.get(from);
    }

    private void jump(Block from, Block to, Block following) {
        if (!inside(to)) {
            save(to);
            g.push(regions.of(to).number);
            g.cb.ireturn();
            return;
        }
        if (position.get(to) <= position.get(from)) {
            Label go = labels.get(to);
            g.cb.iinc(g.budgetLocal, -1);
            g.cb.iload(g.budgetLocal);
            g.cb.ifge(go);
            g.slot();
            g.call("CtaSlot", "poll", "IC");
            g.cb.istore(g.budgetLocal);
            g.cb.goto_(go);
        } else if (to != following) {
            g.cb.goto_(labels.get(to));
        }
    }

    private void indexed(Block block, Block.Term.Switch s) {
        List<SwitchCase> cases = new ArrayList<>();
        List<Label> own = new ArrayList<>();
        for (int k = 0; k < s.targets().size(); k++) {
            boolean direct = plain(block, s.targets().get(k));
            own.add(direct ? null : g.cb.newLabel());
            cases.add(SwitchCase.of(k, direct ? labels.get(s.targets().get(k)) : own.get(k)));
        }
        g.push(s.index(), PtxType.U32);
        Label outside = g.cb.newLabel();
        g.cb.tableswitch(0, s.targets().size() - 1, outside, cases);
        for (int k = 0; k < own.size(); k++) {
            if (own.get(k) != null) {
                g.cb.labelBinding(own.get(k));
                jump(block, s.targets().get(k), null);
            }
        }
        g.cb.labelBinding(outside);
        g.call("Builtins", "trap", "V");
        g.cb.aconst_null().athrow();
    }
}
