package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.Function;
import io.hawser.gpu.software.ptx.ModuleTree;
import io.hawser.gpu.software.ptx.Variable;

/** The names of one module. Identity counts: two modules may have private things of one name. */
final class ModuleScope {
    final ModuleTree tree;

    ModuleScope(ModuleTree tree) {
        this.tree = tree;
    }

    Variable variable(String name) {
        return tree.variables().get(name);
    }

    Function function(String name) {
        Function function = tree.functions().get(name);
        if (function == null && tree.aliases().containsKey(name)) {
            return tree.functions().get(tree.aliases().get(name));
        }
        return function;
    }
}
