package io.hawser.gpu.software.exec;

/**
 * The rules by which a texture turns coordinates into texels.
 *
 * @param modeX address mode of the first coordinate.
 * @param modeY of the second.
 * @param modeZ of the third.
 * @param linear whether fetches mix neighbouring texels.
 * @param normalized whether coordinates from 0 to 1 span the texture.
 * @param linearLevels whether fetches mix neighbouring levels.
 * @param levelBias added to a fetch's level of detail.
 * @param minLevel lowest level of detail.
 * @param maxLevel highest level of detail.
 * @param border the four words that a fetch outside returns in mode {@link AddressMode#BORDER}.
 * @param seamless whether linear filtering crosses the edges of a cube's faces.
 * @param anisotropy the largest number of samples along the longer gradient; 0 and 1 mean none.
 */
public record Sampler(AddressMode modeX, AddressMode modeY, AddressMode modeZ, boolean linear, boolean normalized,
    boolean linearLevels, float levelBias, float minLevel, float maxLevel, Border border, boolean seamless,
    int anisotropy) {
    /** The border's words by channel. */
    public record Border(int x, int y, int z, int w) {
        int word(int channel) {
            return switch (channel) {
                case 0 -> x;
                case 1 -> y;
                case 2 -> z;
                default -> w;
            };
        }
    }

    /** Which texel stands for an index outside of the texture. */
    public enum AddressMode {
        /** The index modulo the length. */
        WRAP,
        /** The nearest index inside. */
        CLAMP,
        /** The index reflected at both ends. */
        MIRROR,
        /** No texel, but the border. */
        BORDER;

        /** The index inside; -1 for the border. */
        int inside(int index, int length) {
            if (index >= 0 && index < length) {
                return index;
            }
            return switch (this) {
                case WRAP -> Math.floorMod(index, length);
                case CLAMP -> index < 0 ? 0 : length - 1;
                case MIRROR -> {
                    int folded = Math.floorMod(index, 2 * length);
                    yield folded < length ? folded : 2 * length - 1 - folded;
                }
                case BORDER -> -1;
            };
        }
    }
}
