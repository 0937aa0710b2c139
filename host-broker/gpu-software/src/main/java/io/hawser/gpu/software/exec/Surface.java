package io.hawser.gpu.software.exec;

/**
 * A surface object: an array that kernels read and write by byte offsets. Immutable.
 *
 * @param texels slices are layers or faces where the array has them.
 * @param rowBytes bytes of a row.
 */
public record Surface(TexelLevel texels, int rowBytes) implements KernelObjects.Entry {}
