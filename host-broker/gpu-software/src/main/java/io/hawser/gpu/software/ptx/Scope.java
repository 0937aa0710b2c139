package io.hawser.gpu.software.ptx;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The names of one braced block of a function. */
final class Scope {
    // .reg .b32 %r<N>: a register is created at its first use, so that a large N costs nothing.
    private record Family(PtxType type, long count, Map<String, Reg> members) {}

    final Scope outer;
    final Map<String, Label> labels = new HashMap<>();
    final Map<String, List<Label>> targetLists = new HashMap<>();
    final Map<String, Statement.Prototype> prototypes = new HashMap<>();
    private final Map<String, Reg> registers = new HashMap<>();
    private final Map<String, Family> families = new HashMap<>();
    private final Map<String, Variable> variables = new HashMap<>();

    Scope(Scope outer) {
        this.outer = outer;
    }

    boolean declare(String name, PtxType type) {
        return registers.put(name, new Reg(name, type)) == null;
    }

    boolean declareFamily(String prefix, PtxType type, long count) {
        return families.put(prefix, new Family(type, count, new HashMap<>())) == null;
    }

    boolean declare(Variable variable) {
        return variables.put(variable.name(), variable) == null;
    }

    Variable variable(String name) {
        for (Scope scope = this; scope != null; scope = scope.outer) {
            Variable variable = scope.variables.get(name);
            if (variable != null) {
                return variable;
            }
        }
        return null;
    }

    /** The register of a name in this or an outer scope, or null. */
    Reg register(String name) {
        int digits = name.length();
        while (digits > 0 && name.charAt(digits - 1) >= '0' && name.charAt(digits - 1) <= '9') {
            digits--;
        }
        for (Scope scope = this; scope != null; scope = scope.outer) {
            Reg register = scope.registers.get(name);
            if (register == null && digits < name.length() && name.length() - digits <= 9) {
                register = scope.member(name, digits);
            }
            if (register != null) {
                return register;
            }
        }
        return null;
    }

    private Reg member(String name, int digits) {
        // A prefix may itself end in digits: %f1<4> declares %f10..%f13.
        for (int cut = digits; cut < name.length(); cut++) {
            Family family = families.get(name.substring(0, cut));
            boolean plain = name.charAt(cut) != '0' || cut == name.length() - 1;
            if (family != null && plain && Long.parseLong(name.substring(cut)) < family.count) {
                return family.members.computeIfAbsent(name, n -> new Reg(n, family.type));
            }
        }
        return null;
    }

    /** Labels that an inner block uses but does not place; the outer block takes them over. */
    static List<Label> unplaced(Map<String, Label> labels) {
        List<Label> result = new ArrayList<>();
        for (Label label : labels.values()) {
            if (!label.placed) {
                result.add(label);
            }
        }
        return result;
    }
}
