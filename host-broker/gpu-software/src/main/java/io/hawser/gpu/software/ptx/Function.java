package io.hawser.gpu.software.ptx;

import java.util.ArrayList;
import java.util.List;

/** A function or kernel as parsed. */
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

    /** A kernel. */
    public boolean entry() {
        return entry;
    }

    /** Linkage. */
    public Variable.Linkage linkage() {
        return linkage;
    }

    /** What it returns. */
    public List<Variable> returns() {
        return returns;
    }

    /** What it takes. */
    public List<Variable> params() {
        return params;
    }

    /** Its statements; null for a declaration, and for a definition with a {@link #refusal}. */
    public List<Statement> body() {
        return body;
    }

    /** Variables declared in it, of all spaces. */
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

    /** Demands a cluster launch. */
    public boolean cluster() {
        return cluster;
    }

    /** The first thing in its text that the software GPU does not run; null when the parser found none. */
    public PtxException refusal() {
        return refusal;
    }

    /** Whether the module defines it; a declaration has no body and no refusal. */
    public boolean isDefined() {
        return body != null || refusal != null;
    }

    /** Its shape; null for a refused function whose parameters the parser does not know. */
    public Statement.Prototype prototype() {
        return shapeUnknown ? null : new Statement.Prototype(returns, params);
    }
}
