package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.Function;
import io.hawser.gpu.software.ptx.Label;
import io.hawser.gpu.software.ptx.Operand;
import io.hawser.gpu.software.ptx.PtxException;
import io.hawser.gpu.software.ptx.PtxType;
import io.hawser.gpu.software.ptx.Reg;
import io.hawser.gpu.software.ptx.Statement;
import io.hawser.gpu.software.ptx.Variable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Lowers a function's statements to blocks of steps. Each family of instructions has its rules in a class of its own.
 */
final class Lowering {
    /** Lowers the instructions of one opcode. */
    interface Rule {
        void lower(Lowering l, Statement.Instruction i) throws PtxException;
    }

    private static final Map<String, Rule> RULES = new HashMap<>();
    private static final Set<String> CONTROL = Set.of("bra", "brx", "call", "ret", "exit", "trap", "brkpt");
    private static final int MAX_BLOCK_WEIGHT = 1500;
    // Expanding functions that wait multiplies the code: the limit bounds one kernel's instructions.
    private static final int MAX_INSTRUCTIONS = 400_000;

    static {
        MoveRules.register(RULES);
        CompareRules.register(RULES);
        ConvertRules.register(RULES);
        MemoryRules.register(RULES);
        AtomicRules.register(RULES);
        TextureRules.register(RULES);
        SurfaceRules.register(RULES);
        SyncRules.register(RULES);
        CarryRules.register(RULES);
    }

    final Code code;
    final LinkContext link;
    Activation at;
    Block block;
    int line;
    private int blockWeight;
    private int instructions;

    /** Whether the software GPU runs some form of an opcode. */
    static boolean isKnown(String opcode) {
        return CONTROL.contains(opcode) || RULES.containsKey(opcode) || Alu.isKnown(opcode);
    }

    private Lowering(Code code, LinkContext link) {
        this.code = code;
        this.link = link;
    }

    /** Lowers a kernel or a called function. */
    static Code lower(FunctionRef ref, LinkContext link) throws PtxException {
        Function function = ref.function();
        Code code = new Code(function.name(), function.entry());
        Lowering l = new Lowering(code, link);
        l.line = function.line();
        try {
            Activation activation = new Activation(ref, null);
            l.at = activation;
            l.block = code.block();
            l.parameters(function);
            l.body(function);
            l.finish();
            code.decideTypes();
            return code;
        } catch (Refusal e) {
            throw PtxException.unsupported(l.line, e.getMessage());
        }
    }

    private void parameters(Function function) {
        if (function.entry()) {
            return;
        }
        for (Variable parameter : function.params()) {
            if (parameter.array()) {
                VReg pointer = code.register(parameter.name(), PtxType.U32);
                code.parameters.add(pointer);
                at.params.put(parameter, new Activation.Place(null, Src.of(pointer)));
            } else {
                VReg scalar = code.register(parameter.name(), parameter.type());
                code.parameters.add(scalar);
                at.params.put(parameter, new Activation.Place(scalar, null));
            }
        }
        for (Variable result : function.returns()) {
            if (result.array()) {
                VReg pointer = code.register(result.name(), PtxType.U32);
                code.parameters.add(pointer);
                at.params.put(result, new Activation.Place(null, Src.of(pointer)));
            } else if (code.returns != null) {
                throw new Refusal("functions with several results");
            } else {
                code.returns = result.type();
                at.params.put(result, new Activation.Place(code.register(result.name(), result.type()), null));
            }
        }
    }

    /** Expands a body into the current block. */
    void body(Function function) throws PtxException {
        for (Variable variable : function.variables()) {
            switch (variable.space()) {
                case LOCAL -> at.locals.put(variable, code.allocate(variable));
                case PARAM -> at.params.put(variable, variable.array()
                    ? new Activation.Place(null, new Src.Frame(code.allocate(variable)))
                    : new Activation.Place(code.register(variable.name(), variable.type()), null));
                case SHARED -> {}
                default -> throw PtxException.unsupported(function.line(), "a function's own ." + variable.space()
                    .name().toLowerCase(java.util.Locale.ROOT) + " variable");
            }
        }
        for (Statement statement : function.body()) {
            if (++instructions > MAX_INSTRUCTIONS) {
                throw new Refusal("kernels over " + MAX_INSTRUCTIONS + " instructions");
            }
            switch (statement) {
                case Statement.Mark mark -> {
                    Block next = labelled(mark.label());
                    jump(next);
                    start(next);
                }
                case Statement.Instruction i -> {
                    line = i.line();
                    instruction(i);
                }
                case Statement.Call call -> {
                    line = call.line();
                    CallRules.lower(this, call);
                }
                case Statement.IndexedBranch branch -> {
                    line = branch.line();
                    indexed(branch);
                }
            }
        }
        if (block.term == null) {
            ret();
        }
    }

    private void instruction(Statement.Instruction i) throws PtxException {
        switch (i.op()) {
            case "bra" -> {
                Block target = labelled(((Operand.Target) i.operands().get(0)).label());
                if (i.guard() == null) {
                    jump(target);
                    start(code.block());
                } else {
                    Block next = code.block();
                    branch(i.guard(), target, next);
                    start(next);
                }
            }
            case "ret", "exit" -> {
                Block next = guarded(i.guard());
                if (i.op().equals("exit") && !code.kernel) {
                    add(new Ins(line).emits(g -> g.call("Builtins", "exitThread", "V")));
                    end(new Block.Term.Never());
                } else if (i.op().equals("exit")) {
                    end(new Block.Term.Exit());
                } else {
                    ret();
                }
                start(next == null ? code.block() : next);
            }
            case "trap", "brkpt" -> {
                Block next = guarded(i.guard());
                add(new Ins(line).emits(g -> g.call("Builtins", "trap", "V")));
                end(new Block.Term.Never());
                start(next == null ? code.block() : next);
            }
            default -> {
                Rule rule = RULES.get(i.op());
                if (rule != null) {
                    rule.lower(this, i);
                } else {
                    ArithmeticRules.lower(this, i);
                }
            }
        }
    }

    private void indexed(Statement.IndexedBranch branch) throws PtxException {
        if (branch.targets().isEmpty()) {
            throw invalid("a list of branch targets must not be empty");
        }
        Block next = guarded(branch.guard());
        Src index = source(branch.index(), PtxType.U32);
        if (index instanceof Src.R r) {
            r.reg().vote(PtxType.U32);
        }
        end(new Block.Term.Switch(index, branch.targets().stream().map(this::labelled).toList()));
        start(next == null ? code.block() : next);
    }

    private void ret() {
        if (at.continuation != null) {
            jump(at.continuation);
        } else if (code.kernel) {
            end(new Block.Term.Exit());
        } else {
            Src result = null;
            for (Variable variable : at.function.function().returns()) {
                VReg scalar = at.params.get(variable).scalar();
                result = scalar != null ? Src.of(scalar) : result;
            }
            end(new Block.Term.Return(result));
        }
    }

    Block labelled(Label label) {
        return at.labels.computeIfAbsent(label, l -> code.block());
    }

    void start(Block next) {
        block = next;
        blockWeight = 0;
    }

    void end(Block.Term term) {
        if (block.term == null) {
            block.term = term;
        }
    }

    void jump(Block to) {
        end(new Block.Term.Jump(to));
    }

    void branch(Operand.Register guard, Block yes, Block no) {
        end(new Block.Term.Branch(register(guard.reg()), guard.negated(), yes, no));
    }

    /**
     * With a guard, continues in a new block under it and returns the block after it; without a guard, returns null.
     */
    Block guarded(Operand.Register guard) {
        if (guard == null) {
            return null;
        }
        Block inside = code.block();
        Block after = code.block();
        branch(guard, inside, after);
        start(inside);
        return after;
    }

    void add(Ins ins) {
        block.code.add(ins);
        blockWeight += ins.weight();
        if (blockWeight > MAX_BLOCK_WEIGHT) {
            // Regions are cut between blocks, so no block may become large.
            Block next = code.block();
            jump(next);
            start(next);
        }
    }

    /** A step with the instruction's guard. */
    Ins ins(Statement.Instruction i) {
        Ins ins = new Ins(i.line());
        if (i.guard() != null) {
            ins.guard = register(i.guard().reg());
            ins.guardNegated = i.guard().negated();
        }
        return ins;
    }

    /** Adds a step. A guarded step keeps its results when the guard fails, so the step reads them as well. */
    void add(Statement.Instruction i, Ins ins) {
        if (ins.guard != null) {
            ins.uses.add(ins.guard);
            ins.uses.addAll(ins.defs);
        }
        add(ins);
    }

    /** Ends the block with a wait. The caller has turned guards into branches. */
    void suspend(Ins op) {
        Block next = code.block();
        end(new Block.Term.Suspend(op, next));
        start(next);
    }

    private void finish() {
        for (Block b : code.blocks) {
            if (b.term == null) {
                b.term = code.kernel ? new Block.Term.Exit() : new Block.Term.Never();
                if (!code.kernel) {
                    b.code.add(new Ins(line).emits(g -> g.call("Builtins", "trap", "V")));
                }
            }
        }
    }

    VReg register(Reg reg) {
        return at.registers.computeIfAbsent(reg, r -> code.register(r.name(), r.type()));
    }

    VReg temporary(PtxType type) {
        return code.register("temporary", type);
    }

    /** Whether a register can hold a type: registers may be wider than integers, but a float must fit exactly. */
    private static boolean holds(Reg reg, PtxType type) {
        boolean predicate = reg.type() == PtxType.PRED;
        return predicate == (type == PtxType.PRED) && reg.type() != PtxType.B128
            && (type.floating() ? reg.type().bits() == type.bits() : reg.type().bits() >= type.bits());
    }

    /** An operand as a value of a type; throws when the widths do not fit. */
    Src source(Operand operand, PtxType as) throws PtxException {
        return switch (operand) {
            case Operand.Register r -> {
                if (r.negated() && as != PtxType.PRED || !holds(r.reg(), as)) {
                    throw invalid("register must hold ." + as.ptxName() + ": " + r.reg());
                }
                yield new Src.R(register(r.reg()), r.negated());
            }
            case Operand.IntImm i -> {
                if (as.floating()) {
                    // ptxas accepts an integer as a floating operand and takes its value.
                    yield new Src.Fp(Double.doubleToRawLongBits(i.value()), false);
                }
                yield new Src.Int(i.value());
            }
            case Operand.FpImm f -> new Src.Fp(f.bits(), f.single());
            case Operand.Special s -> {
                if (!Specials.known(s.name())) {
                    throw PtxException.unsupported(line, "special register %" + s.name());
                }
                yield new Src.Special(s.name());
            }
            case Operand.Local local -> variable(local.variable(), local.offset());
            case Operand.Name name -> named(name.name(), name.offset());
            default -> throw invalid("operand must be a register or a constant");
        };
    }

    /** Address of a function's own variable or parameter in its state space. */
    Src variable(Variable variable, long offset) throws PtxException {
        switch (variable.space()) {
            case SHARED :
                return new Src.Shared(at.function.scope(), variable, offset);
            case LOCAL :
                return new Src.Frame(at.locals.get(variable) + offset);
            default :
                break;
        }
        Activation.Place place = at.params.get(variable);
        if (place == null) {
            return Src.of(ParamLayout.offset(at.function.function(), variable) + offset);
        }
        if (place.base() == null) {
            throw PtxException.unsupported(line, "address of a scalar parameter: " + variable);
        }
        if (place.base() instanceof Src.Frame frame) {
            return new Src.Frame(frame.offset() + offset);
        }
        if (offset != 0) {
            throw PtxException.unsupported(line, "offset address of a parameter: " + variable);
        }
        return place.base();
    }

    /** Address of a variable or function of module scope. */
    Src named(String name, long offset) throws PtxException {
        ModuleScope scope = at.function.scope();
        Variable variable = scope.variable(name);
        PtxException refused = scope.refusedVariable(name);
        if (refused != null) {
            throw PtxException.unsupported(line, "use of " + name + ", " + refused.getMessage());
        }
        if (variable == null && scope.function(name) == null) {
            throw invalid("name must be declared: " + name);
        }
        if (variable != null && variable.space() == Variable.Space.SHARED) {
            return new Src.Shared(scope, variable, offset);
        }
        if (variable != null && variable.space() == Variable.Space.LOCAL) {
            throw PtxException.unsupported(line, "local variables of module scope: " + name);
        }
        return new Src.Symbol(scope, name, offset);
    }

    /** The register that receives a result of a type. */
    VReg target(Operand operand, PtxType type) throws PtxException {
        if (operand instanceof Operand.Sink) {
            return temporary(type);
        }
        if (!(operand instanceof Operand.Register r) || r.negated() || !holds(r.reg(), type)) {
            throw invalid("result must go to a register of ." + type.ptxName());
        }
        return register(r.reg());
    }

    void operands(Statement.Instruction i, int least, int most) throws PtxException {
        int count = i.operands().size();
        if (count > most) {
            // Newer versions of PTX add forms with more operands to instructions.
            throw unsupported(i);
        }
        if (count < least) {
            throw invalid(i.spelling() + " must have " + least + (least == most ? "" : " to " + most)
                + " operands: " + count);
        }
    }

    PtxException invalid(String rule) {
        return PtxException.invalid(line, rule);
    }

    PtxException unsupported(Statement.Instruction i) {
        return PtxException.unsupported(i.line(), i.spelling());
    }

    /** The modifiers that name types, in order. */
    static List<PtxType> types(Statement.Instruction i) {
        List<PtxType> result = new ArrayList<>();
        for (String word : i.modifiers()) {
            PtxType type = PtxType.byName(word);
            if (type != null) {
                result.add(type);
            }
        }
        return result;
    }
}
