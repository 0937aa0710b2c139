package io.hawser.gpu.software.exec;

import java.util.List;

/**
 * A texture object: texels and the rules for reading them. Immutable.
 *
 * @param shape arrangement of the texels.
 * @param format format of a channel.
 * @param channels 1, 2 or 4.
 * @param fractions whether fetches return integers as fractions of their largest value.
 * @param srgb whether the first three channels of a fraction hold sRGB values.
 * @param levels the largest first; one for textures without levels.
 * @param sampler rules.
 */
public record Texture(Shape shape, TexelFormat format, int channels, boolean fractions, boolean srgb,
    List<TexelLevel> levels, Sampler sampler) implements KernelObjects.Entry {
    /** Arrangement of a texture's texels. */
    public enum Shape {
        /** Linear memory that integers index. */
        BUFFER,
        /** One or two dimensions: the device reads a row as an image with one row. */
        FLAT,
        /** Three dimensions. */
        VOLUME,
        /** Layers of one or two dimensions. */
        LAYERED,
        /** Six faces. */
        CUBE,
        /** Layers of six faces. */
        LAYERED_CUBE
    }

    /** Whether a fetch returns floats, which can be mixed. */
    public boolean isFloating() {
        return fractions || format.isFloating();
    }

    int texelBytes() {
        return channels * format.bytes();
    }
}
