package io.hawser.gpu.software.ptx;

/** A place in a function's body. Compared by identity: inner scopes may reuse a name. */
public final class Label {
    private final String name;
    private final int line;
    boolean placed;

    Label(String name, int line) {
        this.name = name;
        this.line = line;
    }

    /** Name as written. */
    public String name() {
        return name;
    }

    /** Line of the first mention. */
    public int line() {
        return line;
    }

    @Override
    public String toString() {
        return name;
    }
}
