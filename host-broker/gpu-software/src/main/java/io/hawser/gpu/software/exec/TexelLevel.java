package io.hawser.gpu.software.exec;

/**
 * The texels of one level of a texture, or of a surface. Every row lies within one allocation.
 *
 * @param address of the first texel, aligned to a texel.
 * @param width texels in a row, from 1.
 * @param height rows in a slice, from 1.
 * @param depth slices, layers or faces, from 1.
 * @param pitch bytes from a row to the next, a multiple of a texel's bytes.
 */
public record TexelLevel(long address, int width, int height, int depth, long pitch) {
    /** Address of a texel; its indexes lie within the level. */
    long at(int x, int y, int z, int texelBytes) {
        return address + ((long) z * height + y) * pitch + (long) x * texelBytes;
    }
}
