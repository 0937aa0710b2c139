package io.hawser.gpu.software.exec;

/**
 * Where global memory is, as kernel code sees it. A record held in a constant of the generated class: the JIT then
 * treats its components as constants.
 *
 * @param base first address that has a shadow.
 * @param size bytes that have a shadow: the arena's, or the whole address space.
 * @param shadow address of the shadow.
 */
public record Globals(long base, long size, long shadow) {
    /** The view of an arena. */
    public static Globals of(GlobalMemory memory) {
        return memory.globals();
    }
}
