package io.hawser.gpu.software.ptx;

import java.util.LinkedHashMap;
import java.util.Map;

/** A parsed module. */
public final class ModuleTree {
    int version;
    int target;
    final Map<String, Variable> variables = new LinkedHashMap<>();
    final Map<String, Function> functions = new LinkedHashMap<>();
    final Map<String, String> aliases = new LinkedHashMap<>();
    final Map<String, PtxException> refusedVariables = new LinkedHashMap<>();

    ModuleTree() {
    }

    /** .version as major * 10 + minor. */
    public int version() {
        return version;
    }

    /** .target, for example 75. */
    public int target() {
        return target;
    }

    /** Module-scope variables by name. */
    public Map<String, Variable> variables() {
        return variables;
    }

    /** Functions and kernels by name; a definition replaces its declarations. */
    public Map<String, Function> functions() {
        return functions;
    }

    /**
     * Variables that the software GPU cannot hold, such as textures, with their refusals; functions that name one are
     * refused.
     */
    public Map<String, PtxException> refusedVariables() {
        return refusedVariables;
    }

    /** .alias: from a name to the name of the aliased function. */
    public Map<String, String> aliases() {
        return aliases;
    }
}
