package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.exec.GlobalMemory;
import io.hawser.gpu.software.exec.Globals;
import io.hawser.gpu.software.ptx.Function;
import io.hawser.gpu.software.ptx.PtxException;
import io.hawser.gpu.software.ptx.Variable;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * One or several modules linked together: the result of cuModuleLoadData and cuLibraryLoadData. Use: {@link #link},
 * allocate memory for {@link #variables()}, {@link #place}, then launch kernels. Load an image in one thread; placed
 * images accept launches from any thread. An image holds no native memory: dropping the reference frees it together
 * with its compiled code.
 */
public final class PtxImage {
    private final Linker linker;
    private final Map<Variable, PtxVariable> known = new IdentityHashMap<>();
    private final List<PtxVariable> variables = new ArrayList<>();
    private final Map<PtxVariable, Variable> sources = new HashMap<>();
    private final Map<PtxVariable, ModuleScope> owners = new HashMap<>();
    private final Map<String, PtxKernel> kernels = new LinkedHashMap<>();
    private Map<PtxVariable, Long> addresses;
    private Globals globals;

    private PtxImage(List<PtxModule> modules) throws PtxException {
        linker = new Linker(modules.stream().map(m -> m.scope).toList());
        for (PtxModule module : modules) {
            known.putAll(module.placed);
            module.placed.forEach((variable, made) -> {
                sources.put(made, variable);
                owners.put(made, module.scope);
            });
        }
        for (PtxModule module : modules) {
            for (PtxVariable made : module.variables()) {
                // Of several weak definitions only the linked one gets memory.
                if (!made.external() && linker.variable(module.scope, made.name()) == sources.get(made)) {
                    variables.add(made);
                }
            }
            for (Function function : module.scope.tree.functions().values()) {
                if (function.entry() && function.isDefined()
                    && linker.resolve(module.scope, function.name()).function() == function) {
                    kernels.put(function.name(), new PtxKernel(this, module, new FunctionRef(module.scope, function)));
                }
            }
        }
    }

    /**
     * Resolves external functions and variables between the modules.
     *
     * @throws PtxException CUDA_ERROR_NOT_FOUND for an unresolved symbol, CUDA_ERROR_INVALID_PTX for a duplicate
     *     definition.
     */
    public static PtxImage link(List<PtxModule> modules) throws PtxException {
        return new PtxImage(List.copyOf(modules));
    }

    /** Variables that need memory (defined ones, global and const), in a stable order. */
    public List<PtxVariable> variables() {
        return Collections.unmodifiableList(variables);
    }

    /** The variable of a name that is visible to the host, or null. */
    public PtxVariable variable(String name) {
        for (PtxVariable variable : variables) {
            if (variable.name().equals(name)) {
                return variable;
            }
        }
        return null;
    }

    /** The kernel at an address that code of the image takes, or null. */
    public PtxKernel kernelAt(long address) {
        Function function = linker.functionAt(address);
        return function == null || !function.entry() ? null : kernels.get(function.name());
    }

    /** All kernels by name; names are unique within an image. */
    public Map<String, PtxKernel> kernels() {
        return Collections.unmodifiableMap(kernels);
    }

    /**
     * Sets the addresses of the variables and writes their initial bytes with relocations. A variable without initial
     * bytes starts as zeros.
     *
     * @param memory the arena that the kernels run on.
     * @param where  an address for each of {@link #variables()}: inside the arena, aligned and marked allocated.
     */
    public void place(GlobalMemory memory, Map<PtxVariable, Long> where) {
        place(memory, where, false);
    }

    /** As {@link #place(GlobalMemory, Map)}; on demand the managed variables keep the bytes that they have. */
    public void place(GlobalMemory memory, Map<PtxVariable, Long> where, boolean keepsManaged) {
        for (PtxVariable variable : variables) {
            Long address = where.get(variable);
            if (address == null || address % variable.alignment() != 0
                || !memory.isAllocated(address, variable.bytes())) {
                throw new IllegalArgumentException("variable must have aligned, allocated memory: " + variable.name()
                    + " address=" + address);
            }
        }
        addresses = new HashMap<>(where);
        globals = Globals.of(memory);
        for (PtxVariable variable : variables) {
            if (!keepsManaged || !variable.managed()) {
                write(memory, variable);
            }
        }
    }

    private void write(GlobalMemory memory, PtxVariable variable) {
        if (variable.bytes() == 0) {
            return;
        }
        memory.zero(addresses.get(variable), variable.bytes());
        Variable source = sources.get(variable);
        if (source.initial() == null) {
            return;
        }
        MemorySegment at = memory.slice(addresses.get(variable), variable.bytes());
        MemorySegment.copy(source.initial(), 0, at, ValueLayout.JAVA_BYTE, 0, source.initial().length);
        for (Variable.Relocation relocation : source.relocations()) {
            long symbol = address(owners.get(variable), relocation.symbol());
            long value = symbol + relocation.addend() >>> relocation.shift();
            for (int i = 0; i < relocation.bytes(); i++) {
                at.set(ValueLayout.JAVA_BYTE, relocation.offset() + i, (byte) (value >>> 8 * i));
            }
        }
    }

    long address(ModuleScope scope, String name) {
        if (scope.variable(name) != null) {
            return addresses.get(known.get(linker.variable(scope, name)));
        }
        return linker.address(linker.resolve(scope, name));
    }

    Linker linker() {
        return linker;
    }

    Globals globals() {
        if (globals == null) {
            throw new IllegalStateException("image must be placed before its kernels are launched");
        }
        return globals;
    }
}
