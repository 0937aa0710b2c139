package io.hawser.gpu.software.ptx;

import java.util.List;

/** An operand in its written form. */
public sealed interface Operand {
    /** A register, negated for {@code !%p}. */
    record Register(Reg reg, boolean negated) implements Operand {}

    /** An integer constant. */
    record IntImm(long value) implements Operand {}

    /** A floating constant: 32 bits for {@code 0f}, otherwise the 64 bits of a double. */
    record FpImm(long bits, boolean single) implements Operand {
        /** The value as a double. */
        public double value() {
            return single ? Float.intBitsToFloat((int) bits) : Double.longBitsToDouble(bits);
        }
    }

    /** A variable of the function or one of its scopes. */
    record Local(Variable variable, long offset) implements Operand {}

    /** A name of module scope: a variable or function, possibly of another module. */
    record Name(String name, long offset) implements Operand {}

    /** A memory operand; base is a Register, Local, Name or IntImm. */
    record Address(Operand base, long offset) implements Operand {}

    /** {@code [object, at]}: a texture or surface with coordinates. */
    record Texel(Operand object, Operand at) implements Operand {}

    /** {@code {a, b, ...}}. */
    record Vector(List<Operand> elements) implements Operand {}

    /** {@code a|b}. */
    record Pair(Operand first, Operand second) implements Operand {}

    /** {@code _}. */
    record Sink() implements Operand {}

    /** A special register, its component included: {@code tid.x}. */
    record Special(String name) implements Operand {}

    /** A branch target. */
    record Target(Label label) implements Operand {}
}
