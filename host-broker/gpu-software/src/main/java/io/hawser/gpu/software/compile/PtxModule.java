package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.Function;
import io.hawser.gpu.software.ptx.ModuleTree;
import io.hawser.gpu.software.ptx.Parser;
import io.hawser.gpu.software.ptx.PtxException;
import io.hawser.gpu.software.ptx.Variable;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/** One PTX text, parsed and checked. Each function that the software GPU cannot run has its refusal. Immutable. */
public final class PtxModule {
    final ModuleScope scope;
    final Map<Variable, PtxVariable> placed = new IdentityHashMap<>();
    private final List<PtxVariable> variables = new ArrayList<>();

    private PtxModule(ModuleTree tree) throws PtxException {
        this.scope = new ModuleScope(tree);
        for (Variable variable : tree.variables().values()) {
            if (scope.variable(variable.name()) == null) {
                continue;
            }
            PtxVariable.Space space = switch (variable.space()) {
                case GLOBAL -> PtxVariable.Space.GLOBAL;
                case CONST -> PtxVariable.Space.CONST;
                default -> null;
            };
            if (space != null) {
                PtxVariable made = new PtxVariable(variable.name(), space, variable.bytes(), variable.alignment(),
                    variable.linkage() == Variable.Linkage.EXTERN,
                    variable.linkage() != Variable.Linkage.EXTERN, variable.managed(), variable.initial() != null);
                placed.put(variable, made);
                variables.add(made);
            }
        }
        for (Function function : tree.functions().values()) {
            check(function);
        }
    }

    private void check(Function function) throws PtxException {
        if (scope.refusal(function) != null || function.body() == null) {
            return;
        }
        try {
            if (function.cluster()) {
                throw PtxException.unsupported(function.line(), ".reqnctapercluster");
            }
            if (function.entry()) {
                ParamLayout.of(function);
            }
            Lowering.lower(new FunctionRef(scope, function), LinkContext.CHECK);
        } catch (Refusal e) {
            scope.refuse(function, PtxException.unsupported(function.line(), e.getMessage()));
        } catch (PtxException e) {
            if (!e.isRefusal()) {
                throw e;
            }
            scope.refuse(function, e);
        }
    }

    /**
     * Parses and checks a module. The first launch of a kernel generates its bytecode.
     *
     * @param ptx the text, without the terminating NUL.
     * @throws PtxException CUDA_ERROR_INVALID_PTX, naming the line; CUDA_ERROR_NOT_SUPPORTED for addresses of 32 bits.
     */
    public static PtxModule compile(String ptx) throws PtxException {
        return new PtxModule(Parser.parse(ptx, Lowering::isKnown));
    }

    /** Module-scope variables in the order of the text, including external ones. */
    public List<PtxVariable> variables() {
        return List.copyOf(variables);
    }

    /** Size of all const variables in bytes. */
    int constBytes() {
        return (int) variables.stream().filter(v -> v.space() == PtxVariable.Space.CONST && !v.external())
            .mapToLong(PtxVariable::bytes).sum();
    }
}
