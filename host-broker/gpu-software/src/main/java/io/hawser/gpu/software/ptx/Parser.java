package io.hawser.gpu.software.ptx;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;

/**
 * Parses a module. The parser resolves names as far as PTX's scopes allow; the types of instructions are checked later.
 * An unsupported instruction, directive or type refuses its function or variable. The parser then skips the text up to
 * the closing brace or semicolon and continues behind it.
 */
public final class Parser {
    private static final Map<String, Variable.Linkage> LINKAGES = Map.of("visible", Variable.Linkage.VISIBLE,
        "extern", Variable.Linkage.EXTERN, "weak", Variable.Linkage.WEAK, "common", Variable.Linkage.COMMON);

    private final Cursor in;
    private final Predicate<String> knownOpcodes;
    private final ModuleTree module = new ModuleTree();

    private Parser(Lexer.Tokens tokens, Predicate<String> knownOpcodes) {
        this.in = new Cursor(tokens);
        this.knownOpcodes = knownOpcodes;
    }

    /**
     * Parses a text.
     *
     * @param knownOpcodes the opcodes that the software GPU may run. Operands of other opcodes may have forms that the
     *     parser does not know.
     * @throws PtxException for any text that is not PTX; no text causes another exception.
     */
    public static ModuleTree parse(String text, Predicate<String> knownOpcodes) throws PtxException {
        Parser parser = new Parser(new Lexer(text).run(), knownOpcodes);
        parser.module();
        return parser.module;
    }

    private void module() throws PtxException {
        while (!in.atEnd()) {
            if (in.skip(";")) {
                continue;
            }
            if (in.kind() != Lexer.DOT) {
                throw in.invalid("a directive must stand here, not '" + in.word() + "'");
            }
            directive();
        }
        if (module.version == 0) {
            throw in.invalid("module must begin with .version");
        }
    }

    private void directive() throws PtxException {
        switch (in.word()) {
            case "version" -> version();
            case "target" -> target();
            case "address_size" -> {
                in.take();
                int line = in.line();
                if (in.integer() != 64) {
                    throw PtxException.unsupported(line, "addresses of other than 64 bits");
                }
            }
            case "section" -> {
                in.take();
                in.take();
                in.skipBlock("{", "}");
            }
            case "pragma" -> in.skipStatement();
            case "alias" -> {
                in.take();
                String name = in.expectName();
                in.expect(",");
                module.aliases.put(name, in.expectName());
                in.expect(";");
            }
            default -> linked();
        }
    }

    private void version() throws PtxException {
        in.take();
        String[] parts = in.take().split("\\.");
        try {
            int minor = parts.length > 1 ? Integer.parseInt(parts[1]) : 0;
            module.version = Integer.parseInt(parts[0]) * 10 + minor;
        } catch (NumberFormatException e) {
            throw in.invalid("version must be major.minor: " + String.join(".", parts));
        }
        if (module.version < 10 || module.version > 999) {
            throw in.invalid("version must be major.minor: " + String.join(".", parts));
        }
    }

    private void target() throws PtxException {
        in.take();
        do {
            String name = in.expectName();
            if (name.startsWith("sm_")) {
                String digits = name.substring(3).replaceAll("[a-z]+$", "");
                if (!digits.matches("[0-9]{2,3}")) {
                    throw in.invalid("target must be sm_NN: " + name);
                }
                module.target = Integer.parseInt(digits);
            }
            // The other words change nothing here. texmode_* concerns textures, whose instructions are refused.
            // map_f64_to_f32: ptxas 13.0 translates such a module for sm_75 with its f64 instructions unchanged.
        } while (in.skip(","));
    }

    private void linked() throws PtxException {
        Variable.Linkage linkage = Variable.Linkage.NONE;
        while (in.kind() == Lexer.DOT && LINKAGES.containsKey(in.word())) {
            linkage = LINKAGES.get(in.take());
        }
        int line = in.line();
        if (in.isDot("entry") || in.isDot("func")) {
            function(linkage);
        } else if (in.kind() == Lexer.DOT && DeclarationParser.space(in.word()) != null) {
            variables(linkage);
        } else if (in.isDot("tex")) {
            in.take();
            refuseVariables(PtxException.unsupported(line, "textures"));
        } else {
            throw in.invalid("directive must be known: '." + in.word() + "'");
        }
    }

    private void variables(Variable.Linkage linkage) throws PtxException {
        int start = in.place();
        try {
            for (Variable variable : new DeclarationParser(in).variables(linkage)) {
                declare(variable);
            }
            in.expect(";");
        } catch (PtxException e) {
            if (!e.isRefusal()) {
                throw e;
            }
            in.goBack(start);
            refuseVariables(e);
        }
    }

    /** Skips a declaration, and refuses the variables that its declarators name. */
    private void refuseVariables(PtxException refusal) throws PtxException {
        boolean named = false;
        while (!in.skip(";")) {
            if (in.atEnd()) {
                throw in.invalid("statement must end with ';'");
            }
            if (in.is("{")) {
                in.skipBlock("{", "}");
            } else if (in.is("(")) {
                in.skipBlock("(", ")");
            } else if (in.kind() == Lexer.ID && !named) {
                module.refusedVariables.putIfAbsent(in.take(), refusal);
                named = true;
            } else {
                named &= !in.take().equals(",");
            }
        }
    }

    private void declare(Variable variable) throws PtxException {
        Variable old = module.variables.get(variable.name());
        boolean declared = variable.linkage() == Variable.Linkage.EXTERN;
        if (old != null && old.linkage() != Variable.Linkage.EXTERN && !declared) {
            throw in.invalid("variable must be defined once: " + variable.name());
        }
        if (variable.space() == Variable.Space.PARAM || variable.space() == Variable.Space.LOCAL && !declared) {
            if (variable.space() == Variable.Space.PARAM) {
                throw in.invalid("a parameter must belong to a function: " + variable.name());
            }
        }
        if (old == null || !declared) {
            module.variables.put(variable.name(), variable);
        }
    }

    private void function(Variable.Linkage linkage) throws PtxException {
        Function function = new Function();
        function.linkage = linkage;
        function.line = in.line();
        function.entry = in.take().equals("entry");
        while (in.kind() == Lexer.DOT && in.word().equals("attribute")) {
            in.take();
            in.expect("(");
            while (!in.skip(")")) {
                if (in.atEnd()) {
                    throw in.invalid("'(' must be closed");
                }
                in.take();
            }
        }
        function.returns = parameters(function);
        function.name = in.expectName();
        function.params = parameters(function);
        if (function.entry && !function.returns.isEmpty()) {
            throw in.invalid("a kernel must return nothing: " + function.name);
        }
        attributes(function);
        Function old = module.functions.get(function.name);
        if (in.is("{")) {
            if (old != null && old.isDefined()) {
                throw in.invalid("function must be defined once: " + function.name);
            }
            body(function);
            if (old != null && linkage == Variable.Linkage.NONE && old.linkage != Variable.Linkage.EXTERN) {
                function.linkage = old.linkage;
            }
            module.functions.put(function.name, function);
        } else {
            in.expect(";");
            function.refusal = null; // a definition gets its own refusal, if any
            if (old == null) {
                module.functions.put(function.name, function);
            }
        }
    }

    private void body(Function function) throws PtxException {
        int start = in.place();
        if (function.refusal == null) {
            try {
                new BodyParser(in, function, module.version, knownOpcodes).parse();
                return;
            } catch (PtxException e) {
                refuse(function, e);
                function.variables.clear();
                in.goBack(start);
            }
        }
        in.skipBlock("{", "}");
    }

    /** Records a function's refusal; rethrows an exception that is not a refusal. */
    private static void refuse(Function function, PtxException e) throws PtxException {
        if (!e.isRefusal()) {
            throw e;
        }
        function.refusal = function.refusal == null ? e : function.refusal;
    }

    private List<Variable> parameters(Function function) throws PtxException {
        int start = in.place();
        try {
            return in.is("(") ? parameters(in) : List.of();
        } catch (PtxException e) {
            refuse(function, e);
            function.shapeUnknown = true;
            in.goBack(start);
            in.skipBlock("(", ")");
            return List.of();
        }
    }

    static List<Variable> parameters(Cursor in) throws PtxException {
        List<Variable> result = new ArrayList<>();
        in.expect("(");
        if (in.skip(")")) {
            return result;
        }
        do {
            result.add(new DeclarationParser(in).parameter());
        } while (in.skip(","));
        in.expect(")");
        return result;
    }

    private void attributes(Function function) throws PtxException {
        while (in.kind() == Lexer.DOT) {
            int line = in.line();
            String word = in.take();
            switch (word) {
                case "maxntid" -> function.maxBlock = dimensions();
                case "reqntid" -> function.requiredBlock = dimensions();
                case "minnctapersm", "maxnctapersm", "maxnreg" -> in.integer();
                case "noreturn", "abi_preserve_control", "explicitcluster" -> {}
                case "abi_preserve" -> in.integer();
                case "pragma" -> in.skipStatement();
                case "maxclusterrank" -> in.integer();
                case "reqnctapercluster" -> {
                    int[] size = dimensions();
                    function.cluster |= size[0] * size[1] * size[2] != 1;
                }
                default -> {
                    refuse(function, PtxException.unsupported(line, "function directive ." + word));
                    while (!in.is("{") && !in.is(";") && in.kind() != Lexer.DOT && !in.atEnd()) {
                        in.take();
                    }
                }
            }
        }
    }

    private int[] dimensions() throws PtxException {
        int[] result = {in.integer(1, 1024), 1, 1};
        for (int i = 1; i < 3 && in.skip(","); i++) {
            result[i] = in.integer(1, 1024);
        }
        return result;
    }
}
