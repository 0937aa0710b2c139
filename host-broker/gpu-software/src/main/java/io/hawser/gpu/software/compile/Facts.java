package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.Function;
import io.hawser.gpu.software.ptx.Label;
import io.hawser.gpu.software.ptx.Operand;
import io.hawser.gpu.software.ptx.Statement;
import io.hawser.gpu.software.ptx.Variable;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Properties of a function's text: its calls, its use of memory and whether it waits. */
final class Facts {
    // A kernel's methods can be split, a called function's cannot: a longer function is expanded into the kernel.
    private static final int MAX_METHOD_STATEMENTS = 1_500;

    /** Names of the called functions, each with the line of its first call. */
    final Map<String, Integer> calls = new LinkedHashMap<>();
    final Set<String> names = new LinkedHashSet<>();
    final List<Statement.Prototype> indirect = new ArrayList<>();
    final Set<Variable> shared = new LinkedHashSet<>();
    /** Whether it has an instruction at which threads wait. */
    boolean waits;
    /** Whether it has an operation of a warp, and not only barriers of the CTA. */
    boolean warpOps;
    /** Whether it is expanded where possible, because it may spin or is large. */
    boolean prefersExpansion;

    Facts(Function function) {
        if (function.body() == null) {
            return;
        }
        Set<Label> placed = new HashSet<>();
        boolean loops = false;
        boolean ordered = false;
        for (Statement statement : function.body()) {
            switch (statement) {
                case Statement.Mark mark -> placed.add(mark.label());
                case Statement.Call call -> {
                    if (call.target() instanceof Operand.Name name) {
                        calls.putIfAbsent(name.name(), call.line());
                    } else {
                        indirect.add(call.prototype());
                    }
                    call.arguments().forEach(this::operand);
                }
                case Statement.IndexedBranch branch -> loops |= branch.targets().stream().anyMatch(placed::contains);
                case Statement.Instruction i -> {
                    i.operands().forEach(this::operand);
                    boolean waiting = SyncRules.WAITING.contains(i.op());
                    waits |= waiting;
                    warpOps |= waiting && (!i.op().startsWith("bar") || i.modifiers().contains("warp"));
                    ordered |= i.op().equals("atom") || i.op().equals("nanosleep") || i.op().equals("ld")
                        && i.modifiers().stream().anyMatch(m -> Set.of("volatile", "relaxed", "acquire").contains(m));
                    loops |= i.op().equals("bra") && i.operands().get(0) instanceof Operand.Target t
                        && placed.contains(t.label());
                }
            }
        }
        prefersExpansion = loops && ordered || function.body().size() > MAX_METHOD_STATEMENTS;
    }

    private void operand(Operand operand) {
        switch (operand) {
            case Operand.Name name -> names.add(name.name());
            case Operand.Local local when local.variable().space() == Variable.Space.SHARED ->
                shared.add(local.variable());
            case Operand.Address address -> operand(address.base());
            case Operand.Texel texel -> operand(texel.object());
            case Operand.Vector vector -> vector.elements().forEach(this::operand);
            default -> {}
        }
    }
}
