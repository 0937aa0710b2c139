package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.Variable;

/** A value that an instruction reads. */
sealed interface Src {
    /** A register; {@code negated} applies to predicates. */
    record R(VReg reg, boolean negated) implements Src {}

    /** An integer constant. */
    record Int(long value) implements Src {}

    /** A floating constant; bits of an f32 or f64. */
    record Fp(long bits, boolean single) implements Src {}

    /** A special register. */
    record Special(String name) implements Src {}

    /** Address of a module's global or const variable, or of a function. */
    record Symbol(ModuleScope scope, String name, long addend) implements Src {}

    /** Offset of a shared variable of a function or a module. */
    record Shared(ModuleScope scope, Variable variable, long addend) implements Src {}

    /** Offset into the thread's local memory, relative to the method's frame. */
    record Frame(long offset) implements Src {}

    static Src of(VReg reg) {
        return new R(reg, false);
    }

    static Src of(long value) {
        return new Int(value);
    }
}
