package io.hawser.gpu.software.exec;

/**
 * The location of global memory, for kernel code. The generated class holds the record in a constant: the JIT then
 * treats its components as constants.
 *
 * @param base first address that has a shadow.
 * @param size bytes that have a shadow: the arena, or the whole address space.
 * @param shadow address of the shadow.
 * @param objects textures and surfaces.
 */
public record Globals(long base, long size, long shadow, KernelObjects objects) {
    /** The location of an arena. */
    public static Globals of(GlobalMemory memory) {
        return memory.globals();
    }
}
