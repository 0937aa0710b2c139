package io.hawser.gpu.software.compile;

/**
 * A module-scope variable that needs device memory.
 *
 * @param name        as in the PTX text.
 * @param space       where it was declared.
 * @param bytes       size; 0 is possible for an empty array.
 * @param alignment   power of two.
 * @param external    declared here and defined by another module of the image: needs no memory of its own.
 * @param exported    visible to the host and to other modules ({@code .visible}, {@code .weak}, {@code .common}).
 * @param managed     {@code __managed__}.
 * @param initialised whether the image has initial bytes for it; otherwise it starts as zeros.
 */
public record PtxVariable(String name, Space space, long bytes, int alignment, boolean external, boolean exported,
    boolean managed, boolean initialised) {
    /** The state spaces that hold variables of a whole module. */
    public enum Space { GLOBAL, CONST }

    // Compared by identity: two modules may each have a private variable of the same name.
    @Override
    public boolean equals(Object other) {
        return this == other;
    }

    @Override
    public int hashCode() {
        return System.identityHashCode(this);
    }
}
