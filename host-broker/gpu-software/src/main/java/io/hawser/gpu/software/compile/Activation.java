package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.Label;
import io.hawser.gpu.software.ptx.Reg;
import io.hawser.gpu.software.ptx.Variable;
import java.util.IdentityHashMap;
import java.util.Map;

/** One expansion of a function's body into generated code: the function's names and their registers or places. */
final class Activation {
    /** Where a parameter lives: in a register, or in memory from a base (an offset into local memory). */
    record Place(VReg scalar, Src base) {}

    final FunctionRef function;
    final Activation caller;
    final Map<Reg, VReg> registers = new IdentityHashMap<>();
    final Map<Variable, Place> params = new IdentityHashMap<>();
    final Map<Variable, Integer> locals = new IdentityHashMap<>();
    final Map<Label, Block> labels = new IdentityHashMap<>();
    /** Block that execution continues at after a return, when this function is expanded inside another one. */
    Block continuation;
    VReg carry;

    Activation(FunctionRef function, Activation caller) {
        this.function = function;
        this.caller = caller;
    }

    boolean isActive(FunctionRef other) {
        for (Activation at = this; at != null; at = at.caller) {
            if (at.function.function() == other.function()) {
                return true;
            }
        }
        return false;
    }
}
