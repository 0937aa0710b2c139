package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.Variable;
import java.util.IdentityHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;

/** Places the shared variables of a kernel and its functions; the dynamic array follows the static ones. */
final class SharedLayout {
    private final Linker linker;
    private final Map<Variable, Integer> offsets = new IdentityHashMap<>();
    final int staticBytes;
    /** Static bytes padded to the start of the dynamic array. */
    final int totalBytes;

    SharedLayout(Linker linker, FunctionRef kernel) {
        this.linker = linker;
        Set<Variable> used = new LinkedHashSet<>();
        for (FunctionRef function : linker.reachable(kernel)) {
            Facts facts = linker.facts(function);
            used.addAll(facts.shared);
            for (String name : facts.names) {
                Variable declared = function.scope().variable(name);
                Variable defined = declared == null || declared.space() != Variable.Space.SHARED ? null
                    : linker.variable(function.scope(), name);
                if (defined != null) { // null for a name in a refused function that no module defines
                    used.add(defined);
                }
            }
        }
        long at = 0;
        int dynamicAlignment = 16;
        boolean dynamic = false;
        for (Variable variable : used) {
            if (variable.unsized()) {
                dynamic = true;
                dynamicAlignment = Math.max(dynamicAlignment, variable.alignment());
                continue;
            }
            at = align(at, variable.alignment());
            offsets.put(variable, (int) at);
            at += variable.bytes();
            // 227 KiB is the largest shared memory of any GPU. The limit only keeps offsets within an int.
            if (at > 1 << 28) {
                throw new Refusal("shared memory over 256 MiB");
            }
        }
        staticBytes = (int) at;
        totalBytes = dynamic ? (int) align(at, dynamicAlignment) : staticBytes;
        for (Variable variable : used) {
            if (variable.unsized()) {
                offsets.put(variable, totalBytes);
            }
        }
    }

    private static long align(long at, int alignment) {
        return (at + alignment - 1) / alignment * alignment;
    }

    long offset(ModuleScope scope, Variable variable) {
        Integer own = offsets.get(variable);
        return own != null ? own : offsets.get(linker.variable(scope, variable.name()));
    }
}
