package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.Operand;
import io.hawser.gpu.software.ptx.PtxException;
import io.hawser.gpu.software.ptx.PtxType;
import io.hawser.gpu.software.ptx.Variable;

/** A memory operand: a base and a constant. */
record Address(Src base, long offset) {
    static Address of(Lowering l, Operand operand) throws PtxException {
        if (!(operand instanceof Operand.Address address)) {
            throw l.invalid("a memory operand must stand in brackets");
        }
        Src base = switch (address.base()) {
            case Operand.Register r -> {
                if (r.negated() || r.reg().type().bits() < 32 || r.reg().type() == PtxType.PRED) {
                    throw l.invalid("address must be a register of 32 or 64 bits: " + r.reg());
                }
                yield Src.of(l.register(r.reg()));
            }
            case Operand.Local local -> l.variable(local.variable(), local.offset());
            case Operand.Name name -> l.named(name.name(), name.offset());
            case Operand.IntImm i -> Src.of(i.value());
            default -> throw l.invalid("address must be a register, a variable or a constant");
        };
        return new Address(base, address.offset());
    }

    /** The variable that an operand names directly, or null. */
    static Variable variable(Operand operand) {
        return operand instanceof Operand.Address a && a.base() instanceof Operand.Local local ? local.variable()
            : null;
    }

    private boolean wideRegister() {
        return base instanceof Src.R r && r.reg().bits() == 64;
    }

    private PtxType type() {
        return wideRegister() || base instanceof Src.Symbol ? PtxType.U64 : PtxType.U32;
    }

    void use(Ins ins) {
        ins.use(base, type());
    }

    /** Pushes a global or generic address on the JVM stack. */
    void pushLong(Gen g) {
        switch (base) {
            case Src.Int i -> g.push(i.value() + offset);
            case Src.Symbol s -> g.push(g.placement.address(s.scope(), s.name()) + s.addend() + offset);
            default -> {
                g.push(base, type());
                g.convert(type(), PtxType.U64);
                if (offset != 0) {
                    g.push(offset);
                    g.cb.ladd();
                }
            }
        }
    }

    /** Pushes the base offset into a window on the JVM stack, and returns the number of words to add to it. */
    int pushBase(Gen g) {
        switch (base) {
            case Src.Int i -> {
                return constant(g, i.value() + offset);
            }
            case Src.Shared s -> {
                return constant(g, g.placement.shared(s.scope(), s.variable()) + s.addend() + offset);
            }
            case Src.Frame f -> {
                g.frame(f.offset() + offset);
                return 0;
            }
            default -> {}
        }
        if (type() == PtxType.U64) {
            pushLong(g);
            g.call("Window", "narrow", "IJ");
            return 0;
        }
        g.push(base, PtxType.U32);
        if (offset % 4 == 0 && Math.abs(offset) < 1 << 28) {
            return (int) offset / 4;
        }
        g.push((int) offset);
        g.cb.iadd();
        return 0;
    }

    private static int constant(Gen g, long at) {
        if (at < 0 || at > Integer.MAX_VALUE) {
            throw new Refusal("constant address outside of the shared, local or parameter memory");
        }
        g.push((int) at);
        return 0;
    }
}
