package io.hawser.gpu.software.ptx;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;

/** Parses a function's body into a flat list of statements with registers and labels resolved. */
final class BodyParser {
    private static final int MAX_DEPTH = 256; // braces that a guest may nest; each open one is a scope to search
    private static final Set<String> SPECIALS = Set.of("tid", "ntid", "laneid", "warpid", "nwarpid", "ctaid", "nctaid",
        "smid", "nsmid", "gridid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid", "cluster_ctarank",
        "cluster_nctarank", "is_explicit_cluster", "lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge",
        "lanemask_gt", "clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi",
        "total_smem_size", "aggr_smem_size", "dynamic_smem_size", "current_graph_exec",
        "reserved_smem_offset_begin", "reserved_smem_offset_end", "reserved_smem_offset_cap");

    private final Cursor in;
    private final Function function;
    private final int version;
    private final Predicate<String> knownOpcodes;
    private final List<Statement> body = new ArrayList<>();
    // A label that was used before its place, and the label that was later placed under that name.
    private final Map<Label, Label> resolved = new HashMap<>();
    private Scope scope = new Scope(null);
    private int depth;

    /** @param version PTX version of the module, major * 10 + minor. */
    BodyParser(Cursor in, Function function, int version, Predicate<String> knownOpcodes) {
        this.in = in;
        this.function = function;
        this.version = version;
        this.knownOpcodes = knownOpcodes;
    }

    void parse() throws PtxException {
        for (Variable parameter : function.params) {
            scope.declare(parameter);
        }
        for (Variable result : function.returns) {
            scope.declare(result);
        }
        in.expect("{");
        scope = new Scope(scope);
        depth = 1;
        while (depth > 0) {
            if (in.atEnd()) {
                throw in.invalid("function must be closed with '}': " + function.name);
            }
            statement();
        }
        function.body = relabelled();
    }

    int version() {
        return version;
    }

    private void statement() throws PtxException {
        if (in.skip("{")) {
            if (++depth > MAX_DEPTH) {
                throw in.invalid("blocks must nest at most " + MAX_DEPTH + " deep");
            }
            scope = new Scope(scope);
        } else if (in.skip("}")) {
            close();
        } else if (in.skip(";")) {
            return;
        } else if (in.kind() == Lexer.DOT) {
            directive();
        } else if (in.kind() == Lexer.ID && in.kind(1) == Lexer.PUNCT && in.word(1).equals(":")) {
            labelled();
        } else {
            new InstructionParser(in, this, knownOpcodes).parse(body);
        }
    }

    private void close() throws PtxException {
        depth--;
        for (Label label : Scope.unplaced(scope.labels)) {
            if (depth == 0) {
                throw PtxException.invalid(label.line(), "label must be placed in the function: " + label.name());
            }
            Label outer = scope.outer.labels.get(label.name());
            if (outer == null) {
                scope.outer.labels.put(label.name(), label);
            } else {
                resolved.put(label, outer);
            }
        }
        scope = scope.outer;
    }

    private void directive() throws PtxException {
        if (in.isDot("reg")) {
            registers();
        } else if (DeclarationParser.space(in.word()) != null) {
            for (Variable variable : new DeclarationParser(in).variables(Variable.Linkage.NONE)) {
                if (!scope.declare(variable)) {
                    throw in.invalid("variable must be declared once: " + variable.name());
                }
                function.variables.add(variable);
            }
            in.expect(";");
        } else if (in.isDot("pragma")) {
            in.skipStatement();
        } else {
            throw in.invalid("directive must be known in a function: '." + in.word() + "'");
        }
    }

    private void registers() throws PtxException {
        in.take();
        if (in.isDot("v2") || in.isDot("v4")) {
            throw PtxException.unsupported(in.line(), "vector registers");
        }
        PtxType type = in.expectType();
        do {
            String name = in.expectName();
            boolean fresh;
            if (in.skip("<")) {
                fresh = scope.declareFamily(name, type, in.integer(0, Integer.MAX_VALUE));
                in.expect(">");
            } else {
                fresh = scope.declare(name, type);
            }
            if (!fresh) {
                throw in.invalid("register must be declared once: " + name);
            }
        } while (in.skip(","));
        in.expect(";");
    }

    private void labelled() throws PtxException {
        int line = in.line();
        String name = in.expectName();
        in.expect(":");
        if (in.skipDot("branchtargets")) {
            List<Label> targets = new ArrayList<>();
            do {
                targets.add(label(in.expectName(), in.line()));
            } while (in.skip(","));
            in.expect(";");
            scope.targetLists.put(name, targets);
        } else if (in.skipDot("callprototype")) {
            List<Variable> returns = in.is("(") ? Parser.parameters(in) : List.of();
            in.expectName();
            List<Variable> params = in.is("(") ? Parser.parameters(in) : List.of();
            in.skipStatement();
            scope.prototypes.put(name, new Statement.Prototype(returns, params));
        } else if (in.skipDot("calltargets")) {
            throw PtxException.unsupported(line, ".calltargets");
        } else {
            Label label = label(name, line);
            if (label.placed) {
                throw in.invalid("label must be placed once: " + name);
            }
            label.placed = true;
            body.add(new Statement.Mark(label));
        }
    }

    /**
     * The label of a name in this block. A use may precede the label's place, which may be in an outer block.
     */
    Label label(String name, int line) {
        Label known = scope.labels.get(name);
        if (known == null) {
            for (Scope outer = scope.outer; outer != null; outer = outer.outer) {
                Label placed = outer.labels.get(name);
                if (placed != null && placed.placed) {
                    // A later label of this block could still hide this one; PTX has no such code.
                    return placed;
                }
            }
            known = new Label(name, line);
            scope.labels.put(name, known);
        }
        return known;
    }

    List<Label> targetList(String name) throws PtxException {
        for (Scope s = scope; s != null; s = s.outer) {
            if (s.targetLists.containsKey(name)) {
                return s.targetLists.get(name);
            }
        }
        throw in.invalid("list of branch targets must be declared before its use: " + name);
    }

    Statement.Prototype prototype(String name) throws PtxException {
        for (Scope s = scope; s != null; s = s.outer) {
            if (s.prototypes.containsKey(name)) {
                return s.prototypes.get(name);
            }
        }
        throw in.invalid("prototype must be declared before its use: " + name);
    }

    /** Resolves a name: a register, a special register, a variable, or a name of module scope. */
    Operand named(String name) throws PtxException {
        Reg register = scope.register(name);
        if (register != null) {
            return new Operand.Register(register, false);
        }
        Variable variable = scope.variable(name);
        if (variable != null) {
            return new Operand.Local(variable, 0);
        }
        if (name.startsWith("%")) {
            return special(name.substring(1));
        }
        if (name.equals("WARP_SZ")) {
            return new Operand.IntImm(32);
        }
        return new Operand.Name(name, 0);
    }

    private Operand special(String name) throws PtxException {
        boolean known = SPECIALS.contains(name)
            || name.matches("envreg[0-9]{1,2}|pm[0-7](_64)?|reserved_smem_offset_[01]");
        if (!known) {
            throw in.invalid("register must be declared: %" + name);
        }
        if (in.kind() == Lexer.DOT && Set.of("x", "y", "z", "w").contains(in.word())) {
            return new Operand.Special(name + "." + in.take());
        }
        return new Operand.Special(name);
    }

    private List<Statement> relabelled() {
        if (resolved.isEmpty()) {
            return body;
        }
        List<Statement> result = new ArrayList<>(body.size());
        for (Statement statement : body) {
            result.add(switch (statement) {
                case Statement.Instruction i -> new Statement.Instruction(i.line(), i.guard(), i.op(), i.modifiers(),
                    i.operands().stream().map(o -> o instanceof Operand.Target t
                        ? new Operand.Target(find(t.label())) : o).toList());
                case Statement.IndexedBranch b -> new Statement.IndexedBranch(b.line(), b.guard(), b.index(),
                    b.targets().stream().map(this::find).toList());
                default -> statement;
            });
        }
        return result;
    }

    private Label find(Label label) {
        Label at = label;
        while (resolved.containsKey(at)) {
            at = resolved.get(at);
        }
        return at;
    }
}
