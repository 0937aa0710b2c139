package io.hawser.gpu.software.ptx;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;

/** Parses one instruction with its guard and operands. */
final class InstructionParser {
    private static final int MAX_VECTOR = 8;
    /** PTX version, major * 10 + minor, up to which {@link #OTHERS} is complete. */
    private static final int LATEST = 90;
    // PTX ISA 9.0, chapter 9.7: the opcodes that the software GPU supports in no form. The list separates text that is
    // not PTX from code that only a GPU can run.
    private static final Set<String> OTHERS = Set.of("alloca", "clusterlaunchcontrol", "getctarank", "istypep",
        "ldmatrix", "mapa", "mbarrier", "mma", "movmatrix", "multimem", "setmaxnreg", "stackrestore", "stacksave",
        "stmatrix", "suq", "tcgen05", "tensormap", "vabsdiff", "vadd", "vadd2", "vadd4", "vavrg2", "vavrg4", "vmad",
        "vmax", "vmax2", "vmax4", "vmin", "vmin2", "vmin4", "vset", "vset2", "vset4", "vshl", "vshr", "vsub", "vsub2",
        "vsub4", "wgmma", "wmma");

    private final Cursor in;
    private final BodyParser names;
    private final Predicate<String> knownOpcodes;

    InstructionParser(Cursor in, BodyParser names, Predicate<String> knownOpcodes) {
        this.in = in;
        this.names = names;
        this.knownOpcodes = knownOpcodes;
    }

    void parse(List<Statement> body) throws PtxException {
        Operand.Register guard = null;
        if (in.skip("@")) {
            boolean negated = in.skip("!");
            if (!(names.named(in.expectName()) instanceof Operand.Register register)
                || register.reg().type() != PtxType.PRED) {
                throw in.invalid("guard must be a predicate register");
            }
            guard = new Operand.Register(register.reg(), negated);
        }
        int line = in.line();
        String op = in.expectName();
        List<String> modifiers = new ArrayList<>();
        while (in.kind() == Lexer.DOT) {
            modifiers.add(in.take());
        }
        if (!knownOpcodes.test(op)) {
            if (!OTHERS.contains(op) && names.version() <= LATEST) {
                throw PtxException.invalid(line, "instruction must be one of PTX: " + op);
            }
            throw PtxException.unsupported(line, spelling(op, modifiers));
        }
        switch (op) {
            case "call" -> body.add(call(line, guard));
            case "bra" -> {
                Operand target = new Operand.Target(names.label(in.expectName(), line));
                body.add(new Statement.Instruction(line, guard, op, modifiers, List.of(target)));
            }
            case "brx" -> {
                Operand index = operand();
                in.expect(",");
                body.add(new Statement.IndexedBranch(line, guard, index, names.targetList(in.expectName())));
            }
            default -> body.add(new Statement.Instruction(line, guard, op, List.copyOf(modifiers), operands()));
        }
        in.expect(";");
    }

    private static String spelling(String op, List<String> modifiers) {
        return new Statement.Instruction(0, null, op, modifiers, List.of()).spelling();
    }

    private List<Operand> operands() throws PtxException {
        List<Operand> result = new ArrayList<>();
        if (in.is(";")) {
            return result;
        }
        do {
            Operand first = operand();
            if (in.skip("|")) {
                first = new Operand.Pair(first, operand());
            }
            result.add(first);
        } while (in.skip(","));
        return result;
    }

    private Statement.Call call(int line, Operand.Register guard) throws PtxException {
        List<Operand> returns = List.of();
        if (in.is("(")) {
            returns = list();
            in.expect(",");
        }
        Operand target = names.named(in.expectName());
        List<Operand> arguments = List.of();
        Statement.Prototype prototype = null;
        while (in.skip(",")) {
            if (in.is("(")) {
                arguments = list();
            } else {
                prototype = names.prototype(in.expectName());
            }
        }
        if (!(target instanceof Operand.Name) && !(target instanceof Operand.Register)) {
            throw in.invalid("call must name a function or a register");
        }
        if (target instanceof Operand.Register && prototype == null) {
            throw in.invalid("an indirect call must name its prototype");
        }
        return new Statement.Call(line, guard, returns, target, arguments, prototype);
    }

    private List<Operand> list() throws PtxException {
        List<Operand> result = new ArrayList<>();
        in.expect("(");
        if (in.skip(")")) {
            return result;
        }
        do {
            result.add(operand());
        } while (in.skip(","));
        in.expect(")");
        return result;
    }

    private Operand operand() throws PtxException {
        if (in.skip("[")) {
            return address();
        }
        if (in.skip("{")) {
            List<Operand> elements = new ArrayList<>();
            do {
                elements.add(simple());
            } while (in.skip(",") && elements.size() < MAX_VECTOR);
            in.expect("}");
            return new Operand.Vector(elements);
        }
        return simple();
    }

    private Operand simple() throws PtxException {
        if (in.skip("!")) {
            if (names.named(in.expectName()) instanceof Operand.Register register) {
                return new Operand.Register(register.reg(), true);
            }
            throw in.invalid("'!' must stand before a predicate register");
        }
        if (in.kind() == Lexer.ID) {
            String name = in.take();
            if (name.equals("_")) {
                return new Operand.Sink();
            }
            Operand named = names.named(name);
            if (in.kind() == Lexer.DOT && named instanceof Operand.Register) {
                throw PtxException.unsupported(in.line(), "part of a register: " + name + "." + in.word());
            }
            return offset(named);
        }
        return constant();
    }

    private Operand offset(Operand operand) throws PtxException {
        if (!in.is("+") && !in.is("-")) {
            return operand;
        }
        return switch (operand) {
            case Operand.Local local -> new Operand.Local(local.variable(), in.integer());
            case Operand.Name name -> new Operand.Name(name.name(), in.integer());
            default -> throw in.invalid("an offset needs a variable before it");
        };
    }

    private Operand constant() throws PtxException {
        boolean negative = false;
        while (in.is("-") || in.is("+")) {
            negative ^= in.take().equals("-");
        }
        boolean inverted = in.skip("~");
        if (in.kind() == Lexer.FP) {
            Operand.FpImm value = in.floating();
            long sign = negative ? value.single() ? 0x80000000L : Long.MIN_VALUE : 0;
            return new Operand.FpImm(value.bits() ^ sign, value.single());
        }
        if (in.kind() != Lexer.INT) {
            throw in.invalid("an operand must stand here, not '" + in.word() + "'");
        }
        long value = in.integer();
        value = negative ? -value : value;
        return new Operand.IntImm(inverted ? ~value : value);
    }

    private Operand address() throws PtxException {
        Operand base;
        if (in.kind() == Lexer.ID) {
            base = names.named(in.take());
            if (in.skip(",")) {
                return texel(base);
            }
        } else {
            base = new Operand.IntImm(in.integer());
        }
        if (base instanceof Operand.Special) {
            throw in.invalid("an address must be a register, a variable or a constant");
        }
        long offset = 0;
        while (in.is("+") || in.is("-")) {
            offset += in.integer();
        }
        in.expect("]");
        return new Operand.Address(base, offset);
    }

    private Operand texel(Operand object) throws PtxException {
        Operand at = operand();
        if (in.is(",")) {
            throw PtxException.unsupported(in.line(), "samplers apart from textures");
        }
        in.expect("]");
        return new Operand.Texel(object, at);
    }
}
