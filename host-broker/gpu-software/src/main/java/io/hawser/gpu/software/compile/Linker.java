package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.Function;
import io.hawser.gpu.software.ptx.PtxException;
import io.hawser.gpu.software.ptx.Statement;
import io.hawser.gpu.software.ptx.Variable;
import io.hawser.gpu.software.ptx.Variable.Linkage;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Resolves names between the modules of an image, and computes which functions each function can reach. */
final class Linker implements LinkContext {
    // Equals Window.CODE: addresses of functions differ from all addresses of memory.
    private static final long CODE_BASE = 4L << 56;

    private final List<ModuleScope> scopes;
    private final Map<String, FunctionRef> exportedFunctions = new HashMap<>();
    private final Map<String, Variable> exportedVariables = new HashMap<>();
    private final Map<Function, FunctionRef> definitions = new IdentityHashMap<>();
    /**
     * Functions of the device runtime that modules declare and that only a GPU has; code that needs them is refused.
     */
    private final Map<String, FunctionRef> runtime = new HashMap<>();
    /** Functions refused because of a definition in another module or the lack of one. */
    private final Map<Function, PtxException> refusals = new IdentityHashMap<>();
    private final Map<Function, Facts> facts = new IdentityHashMap<>();
    private final Map<Function, Boolean> waits = new IdentityHashMap<>();
    private final Map<Function, Boolean> expands = new IdentityHashMap<>();
    private final Map<Function, Long> addresses = new IdentityHashMap<>();
    private final List<FunctionRef> addressTaken = new ArrayList<>();

    Linker(List<ModuleScope> scopes) throws PtxException {
        this.scopes = scopes;
        for (ModuleScope scope : scopes) {
            export(scope);
        }
        for (ModuleScope scope : scopes) {
            for (Function function : scope.tree.functions().values()) {
                facts.put(function, new Facts(function));
            }
        }
        for (ModuleScope scope : scopes) {
            check(scope);
        }
        propagate();
    }

    private void export(ModuleScope scope) throws PtxException {
        for (Function function : scope.tree.functions().values()) {
            if (!function.isDefined()) {
                continue;
            }
            FunctionRef ref = new FunctionRef(scope, function);
            definitions.put(function, ref);
            if (function.linkage() == Linkage.NONE && !function.entry()) {
                continue;
            }
            FunctionRef old = exportedFunctions.get(function.name());
            if (old == null || old.function().linkage() == Linkage.WEAK) {
                exportedFunctions.put(function.name(), ref);
            } else if (function.linkage() != Linkage.WEAK) {
                throw PtxException.invalid(function.line(), "symbol must be defined by one module only: "
                    + function.name());
            }
        }
        for (Variable variable : scope.tree.variables().values()) {
            Linkage linkage = variable.linkage();
            boolean refused = scope.variable(variable.name()) == null;
            if (linkage == Linkage.NONE || linkage == Linkage.EXTERN || refused) {
                continue;
            }
            Variable old = exportedVariables.get(variable.name());
            boolean weakOld = old == null || old.linkage() == Linkage.WEAK || old.linkage() == Linkage.COMMON;
            if (weakOld && (old == null || linkage == Linkage.VISIBLE)) {
                exportedVariables.put(variable.name(), variable);
            } else if (!weakOld && linkage == Linkage.VISIBLE) {
                throw PtxException.invalid(1, "symbol must be defined by one module only: " + variable.name());
            }
        }
    }

    /**
     * Requires a definition for every name that code or an initial value uses, and notes the functions whose address is
     * taken. The names in refused functions are not checked.
     */
    private void check(ModuleScope scope) throws PtxException {
        for (Function function : scope.tree.functions().values()) {
            if (scope.refusal(function) != null) {
                continue;
            }
            Facts of = facts.get(function);
            for (Map.Entry<String, Integer> call : of.calls.entrySet()) {
                if (!isBuiltIn(scope, call.getKey()) && resolveOrRuntime(scope, call.getKey()) == null) {
                    throw unresolved(call.getKey());
                }
            }
            for (String name : of.names) {
                if (scope.variable(name) == null) {
                    takeAddress(scope, name);
                } else if (variable(scope, name) == null) {
                    PtxException refusal = refusedElsewhere(name);
                    if (refusal == null) {
                        throw unresolved(name);
                    }
                    refusals.put(function, PtxException.unsupported(function.line(), "use of " + name + ", "
                        + refusal.getMessage()));
                }
            }
        }
        for (Variable variable : scope.tree.variables().values()) {
            if (scope.variable(variable.name()) == null) {
                continue;
            }
            for (Variable.Relocation relocation : variable.relocations()) {
                if (scope.variable(relocation.symbol()) == null) {
                    takeAddress(scope, relocation.symbol());
                } else if (variable(scope, relocation.symbol()) == null) {
                    throw unresolved(relocation.symbol());
                }
            }
        }
    }

    /** Whether a name calls one of the functions that every kernel has. */
    private static boolean isBuiltIn(ModuleScope scope, String name) {
        Function declared = scope.function(name);
        return declared != null && !declared.isDefined() && CallRules.BUILT_IN.containsKey(name);
    }

    /**
     * The definition of a function. For a function of the device runtime that modules only declare, returns a refused
     * function: code that needs it is refused, and all other code works.
     */
    private FunctionRef resolveOrRuntime(ModuleScope scope, String name) {
        FunctionRef known = resolve(scope, name);
        Function declared = scope.function(name);
        // libcudadevrt, a part of programs whose kernels launch kernels, calls the driver's functions cnp...
        boolean ofRuntime = name.startsWith("cuda") || name.startsWith("__cuda") || name.startsWith("cnp")
            || isBuiltIn(scope, name);
        if (known == null && declared != null && ofRuntime) {
            known = new FunctionRef(scope, declared);
            runtime.put(name, known);
            refusals.put(declared, PtxException.unsupported(declared.line(), "the address of " + name));
        }
        return known;
    }

    /** The refusal of the other module's variable that a name stands for; null if there is none. */
    private PtxException refusedElsewhere(String name) {
        for (ModuleScope scope : scopes) {
            if (scope.refusedVariable(name) != null) {
                return scope.refusedVariable(name);
            }
        }
        return null;
    }

    /**
     * The refusal of a kernel: for its own text, or for that of a function that it calls, perhaps through a pointer.
     *
     * @return null if the checks before translation found nothing to refuse.
     */
    PtxException refusal(FunctionRef kernel) {
        for (FunctionRef reached : reachable(kernel)) {
            PtxException inText = reached.scope().refusal(reached.function());
            PtxException own = inText != null ? inText : refusals.get(reached.function());
            String where = reached.equals(kernel) ? "" : ", in function " + reached.name();
            if (own != null) {
                return new PtxException(own.cuResult(), own.getMessage() + where);
            }
            for (Map.Entry<String, Integer> call : facts(reached).calls.entrySet()) {
                FunctionRef callee = isBuiltIn(reached.scope(), call.getKey()) ? null
                    : resolve(reached.scope(), call.getKey());
                if (callee != null && callee.equals(runtime.get(call.getKey()))) {
                    PtxException refusal = PtxException.unsupported(call.getValue(), "call " + call.getKey());
                    return new PtxException(refusal.cuResult(), refusal.getMessage() + where);
                }
            }
        }
        return null;
    }

    private static PtxException unresolved(String name) {
        return new PtxException(PtxException.NOT_FOUND, "symbol must be defined by a module of the image: " + name);
    }

    private void takeAddress(ModuleScope scope, String name) throws PtxException {
        FunctionRef ref = resolveOrRuntime(scope, name);
        if (ref == null) {
            throw unresolved(name);
        }
        if (!addresses.containsKey(ref.function())) {
            addresses.put(ref.function(), CODE_BASE + 16L * (addresses.size() + 1));
            if (!ref.function().entry()) {
                addressTaken.add(ref);
            }
        }
    }

    /** Propagates two facts along calls: which functions wait, and which are recursive and so cannot be expanded. */
    private void propagate() {
        for (boolean again = true; again;) {
            again = false;
            for (FunctionRef ref : definitions.values()) {
                Facts of = facts.get(ref.function());
                boolean waiting = of.waits;
                boolean preferring = of.prefersExpansion;
                for (FunctionRef callee : callees(ref)) {
                    waiting |= waits.getOrDefault(callee.function(), false);
                    preferring |= expands.getOrDefault(callee.function(), false);
                }
                again |= waiting != waits.getOrDefault(ref.function(), false)
                    || preferring != expands.getOrDefault(ref.function(), false);
                waits.put(ref.function(), waiting);
                expands.put(ref.function(), preferring);
            }
        }
        for (FunctionRef ref : definitions.values()) {
            if (expands.get(ref.function()) && !waits.get(ref.function()) && recursive(ref)) {
                expands.put(ref.function(), false);
            }
        }
    }

    /** Functions that a function calls, directly or possibly through a pointer. */
    List<FunctionRef> callees(FunctionRef ref) {
        List<FunctionRef> result = new ArrayList<>();
        Facts of = facts.get(ref.function());
        for (String name : of.calls.keySet()) {
            FunctionRef callee = resolve(ref.scope(), name);
            if (callee != null && !isBuiltIn(ref.scope(), name)) {
                result.add(callee);
            }
        }
        of.indirect.forEach(p -> result.addAll(candidates(p)));
        return result;
    }

    /** A function and all functions that it can reach, the function itself first. */
    Set<FunctionRef> reachable(FunctionRef from) {
        Set<FunctionRef> result = new LinkedHashSet<>();
        List<FunctionRef> work = new ArrayList<>(List.of(from));
        while (!work.isEmpty()) {
            FunctionRef next = work.removeLast();
            if (result.add(next)) {
                work.addAll(callees(next));
            }
        }
        return result;
    }

    /** Whether a function can reach a recursive function. */
    boolean recursionBelow(FunctionRef from) {
        return reachable(from).stream().anyMatch(this::recursive);
    }

    private boolean recursive(FunctionRef ref) {
        Set<FunctionRef> below = new HashSet<>();
        callees(ref).forEach(c -> below.addAll(reachable(c)));
        return below.contains(ref);
    }

    @Override
    public FunctionRef resolve(ModuleScope scope, String name) {
        Function function = scope.function(name);
        if (function == null) {
            return null;
        }
        if (function.isDefined() && function.linkage() == Linkage.NONE) {
            return definitions.get(function);
        }
        FunctionRef exported = exportedFunctions.get(function.name());
        return exported != null ? exported : function.isDefined() ? definitions.get(function)
            : runtime.get(function.name());
    }

    /** The definition of a variable's name; a dynamic shared array is its own definition. */
    Variable variable(ModuleScope scope, String name) {
        Variable variable = scope.variable(name);
        if (variable.linkage() == Linkage.NONE) {
            return variable;
        }
        Variable exported = exportedVariables.get(name);
        boolean dynamic = variable.space() == Variable.Space.SHARED && variable.unsized();
        return exported != null ? exported : dynamic ? variable
            : variable.linkage() == Linkage.EXTERN ? null : variable;
    }

    @Override
    public boolean mustExpand(FunctionRef function) {
        return waits.getOrDefault(function.function(), false) || expands.getOrDefault(function.function(), false);
    }

    @Override
    public List<FunctionRef> candidates(Statement.Prototype prototype) {
        return addressTaken.stream().filter(f -> f.function().prototype() == null
            || f.function().prototype().matches(prototype)).toList();
    }

    long address(FunctionRef function) {
        return addresses.get(function.function());
    }

    /** The function at an address that code takes, or null. */
    Function functionAt(long address) {
        for (Map.Entry<Function, Long> entry : addresses.entrySet()) {
            if (entry.getValue() == address) {
                return entry.getKey();
            }
        }
        return null;
    }

    /** Whether a kernel can launch kernels. */
    boolean launches(FunctionRef kernel) {
        return reachable(kernel).stream().anyMatch(f -> facts.get(f.function()).calls.keySet().stream()
            .anyMatch(name -> name.startsWith(CallRules.LAUNCHING) && isBuiltIn(f.scope(), name)));
    }

    Facts facts(FunctionRef ref) {
        return facts.get(ref.function());
    }

    List<ModuleScope> scopes() {
        return scopes;
    }

    /** Whether its threads wait for other threads of their warp. */
    boolean warpOps(FunctionRef kernel) {
        return reachable(kernel).stream().anyMatch(f -> facts.get(f.function()).warpOps);
    }
}
