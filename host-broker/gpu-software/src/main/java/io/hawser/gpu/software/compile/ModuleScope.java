package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.Function;
import io.hawser.gpu.software.ptx.ModuleTree;
import io.hawser.gpu.software.ptx.PtxException;
import io.hawser.gpu.software.ptx.Variable;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Map;

/** The names of one module. Compared by identity: two modules may have private names that are equal. */
final class ModuleScope {
    final ModuleTree tree;
    private final Map<Function, PtxException> refusals = new IdentityHashMap<>();
    private final Map<String, PtxException> refusedVariables;

    ModuleScope(ModuleTree tree) {
        this.tree = tree;
        refusedVariables = new HashMap<>(tree.refusedVariables());
        // An initial value that holds the address of a refused variable is refused as well.
        for (boolean again = true; again;) {
            again = false;
            for (Variable variable : tree.variables().values()) {
                for (Variable.Relocation relocation : variable.relocations()) {
                    PtxException cause = refusedVariable(relocation.symbol());
                    again |= cause != null && refusedVariables.putIfAbsent(variable.name(), cause) == null;
                }
            }
        }
        tree.functions().values().forEach(function -> {
            if (function.refusal() != null) {
                refusals.put(function, function.refusal());
            }
        });
    }

    /** The variable of a name if the device can hold it, else null. */
    Variable variable(String name) {
        return refusedVariables.containsKey(name) ? null : tree.variables().get(name);
    }

    /**
     * The reason that the device cannot hold the variable of a name; null when it can, or when there is no such
     * variable.
     */
    PtxException refusedVariable(String name) {
        return refusedVariables.get(name);
    }

    /** The reason that a function's text cannot run; null when it can. */
    PtxException refusal(Function function) {
        return refusals.get(function);
    }

    /** Records during the module's check that a function cannot run. */
    void refuse(Function function, PtxException refusal) {
        refusals.putIfAbsent(function, refusal);
    }

    Function function(String name) {
        Function function = tree.functions().get(name);
        if (function == null && tree.aliases().containsKey(name)) {
            return tree.functions().get(tree.aliases().get(name));
        }
        return function;
    }
}
