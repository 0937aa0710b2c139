package io.hawser.gpu.software.exec;

/**
 * Where global memory is, as kernel code sees it. A record held in a constant of the generated class: the JIT then
 * treats
 * its components as constants.
 */
public record Globals(long base, long size, long shadow) {
    /** The view of an arena. */
    public static Globals of(GlobalMemory memory) {
        return new Globals(memory.base(), memory.size(), memory.shadowAddress());
    }
}
