package io.hawser.gpu.software.ptx;

import java.util.List;

/** An element of a function's body. */
public sealed interface Statement {
    /** The place of a label. */
    record Mark(Label label) implements Statement {}

    /**
     * An instruction.
     *
     * @param line      line in the text.
     * @param guard     predicate that must hold (if the operand is negated: must not hold), or null.
     * @param op        opcode, without modifiers.
     * @param modifiers dot words after the opcode.
     * @param operands  as written; for a call, see {@link Call}.
     */
    record Instruction(int line, Operand.Register guard, String op, List<String> modifiers, List<Operand> operands)
        implements Statement {
        /** The opcode with its modifiers, for messages. */
        public String spelling() {
            return modifiers.isEmpty() ? op : op + "." + String.join(".", modifiers);
        }
    }

    /**
     * A call.
     *
     * @param guard     as for an instruction.
     * @param returns   variables or registers that take the results.
     * @param target    a Name (direct) or Register (indirect).
     * @param arguments variables, registers or constants.
     * @param prototype shape of an indirect call's target, else null.
     */
    record Call(int line, Operand.Register guard, List<Operand> returns, Operand target, List<Operand> arguments,
        Prototype prototype) implements Statement {}

    /**
     * {@code brx.idx}: jumps to one of the targets.
     */
    record IndexedBranch(int line, Operand.Register guard, Operand index, List<Label> targets) implements Statement {}

    /** The shape of a function: the sizes of its results and parameters. */
    record Prototype(List<Variable> returns, List<Variable> params) {
        /** Whether a call through one shape may reach a function with the other. */
        public boolean matches(Prototype other) {
            return same(returns, other.returns) && same(params, other.params);
        }

        private static boolean same(List<Variable> a, List<Variable> b) {
            if (a.size() != b.size()) {
                return false;
            }
            for (int i = 0; i < a.size(); i++) {
                if (a.get(i).bytes() != b.get(i).bytes()) {
                    return false;
                }
            }
            return true;
        }
    }
}
