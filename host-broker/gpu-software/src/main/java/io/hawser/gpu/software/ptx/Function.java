package io.hawser.gpu.software.ptx;

import java.util.ArrayList;
import java.util.List;

/** A parsed function or kernel. */
public final class Function {
    String name;
    int line;
    boolean entry;
    Variable.Linkage linkage = Variable.Linkage.NONE;
    List<Variable> returns = List.of();
    List<Variable> params = List.of();
    List<Statement> body;
    final List<Variable> variables = new ArrayList<>();
    int[] maxBlock;
    int[] requiredBlock;
    boolean cluster;
    PtxException refusal;
    boolean shapeUnknown;

    Function() {
    }

    /** Mangled name. */
    public String name() {
        return name;
    }

    /** Line of its declaration. */
    public int line() {
        return line;
    }

    /** Whether it is a kernel. */
    public boolean entry() {
        return entry;
    }

    /** Linkage. */
    public Variable.Linkage linkage() {
        return linkage;
    }

    /** The variables of its results. */
    public List<Variable> returns() {
        return returns;
    }

    /** The variables of its parameters. */
    public List<Variable> params() {
        return params;
    }

    /** Its statements; null for a declaration, and for a definition with a {@link #refusal}. */
    public List<Statement> body() {
        return body;
    }

    /** Variables declared in it, in all spaces. */
    public List<Variable> variables() {
        return variables;
    }

    /** .maxntid as {x, y, z}, or null. */
    public int[] maxBlock() {
        return maxBlock;
    }

    /** .reqntid as {x, y, z}, or null. */
    public int[] requiredBlock() {
        return requiredBlock;
    }

    /** Whether it requires a cluster launch. */
    public boolean cluster() {
        return cluster;
    }

    /** The refusal of the first unsupported construct in its text; null when the parser found none. */
    public PtxException refusal() {
        return refusal;
    }

    /** Whether the module defines it; a declaration has no body and no refusal. */
    public boolean isDefined() {
        return body != null || refusal != null;
    }

    /** Its shape; null for a refused function with parameters of an unknown kind. */
    public Statement.Prototype prototype() {
        return shapeUnknown ? null : new Statement.Prototype(returns, params);
    }
}
