package io.hawser.gpu.software.exec;

import io.hawser.gpu.software.exec.Sampler.AddressMode;

/**
 * Executes the fetches of one thread's code: tex, tld4 and txq. Generated code calls the static methods and then reads
 * the four words of the result. A fetch allocates nothing.
 *
 * <p>The rules are those of the CUDA programming guide. Linear filtering takes coordinates in units of 1/256 texel,
 * rounded to nearest, as the hardware's weights have 8 bits of fraction; sums have the precision of floats. A texture
 * of one dimension is an image with one row, which a fetch reads at the row's upper edge: in border mode linear
 * filtering therefore mixes half of the border in, as on an H200.
 */
public final class TextureUnit {
    /** Geometries of instructions; the numbers are constants in generated code. */
    public enum Geometry {
        /** One dimension. */
        ONE("1d", 1, Texture.Shape.FLAT),
        /** Two dimensions. */
        TWO("2d", 2, Texture.Shape.FLAT),
        /** Three dimensions. */
        THREE("3d", 3, Texture.Shape.VOLUME),
        /** Layers of one dimension. */
        ONE_LAYERED("a1d", 1, Texture.Shape.LAYERED),
        /** Layers of two dimensions. */
        TWO_LAYERED("a2d", 2, Texture.Shape.LAYERED),
        /** A direction into a cube. */
        CUBE("cube", 3, Texture.Shape.CUBE),
        /** A direction into one of several cubes. */
        CUBE_LAYERED("acube", 3, Texture.Shape.LAYERED_CUBE);

        private static final Geometry[] ALL = values();

        private final String ptxName;
        private final int dimensions;
        private final Texture.Shape shape;

        Geometry(String ptxName, int dimensions, Texture.Shape shape) {
            this.ptxName = ptxName;
            this.dimensions = dimensions;
            this.shape = shape;
        }

        /** The geometry of an instruction's modifier, or null. */
        public static Geometry of(String word) {
            for (Geometry geometry : ALL) {
                if (geometry.ptxName.equals(word)) {
                    return geometry;
                }
            }
            return null;
        }

        /** Number of coordinates, without the layer. */
        public int dimensions() {
            return dimensions;
        }

        /** Whether a layer precedes the coordinates. */
        public boolean layered() {
            return ptxName.charAt(0) == 'a';
        }

        /** Whether the coordinates are a direction. */
        public boolean cube() {
            return this == CUBE || this == CUBE_LAYERED;
        }
    }

    private static final int CHANNELS = 4;
    /** Linear filtering mixes two texels in each of up to three dimensions. */
    private static final int CORNERS = 8;
    private static final int FRACTION_BITS = 8;
    private static final int FRACTION = 1 << FRACTION_BITS;
    /** Coordinates beyond have no texel and no exact index; twice as much still fits an int. */
    private static final double MAX_INDEX = 1 << 29;
    private static final float[] LINEAR_OF_SRGB = new float[256];

    static {
        for (int i = 0; i < LINEAR_OF_SRGB.length; i++) {
            double value = i / 255.0;
            LINEAR_OF_SRGB[i] = (float) (value <= 0.04045 ? value / 12.92 : Math.pow((value + 0.055) / 1.055, 2.4));
        }
    }

    private final int[] result = new int[CHANNELS];
    private final float[] nearer = new float[CHANNELS];
    /** Addresses of the texels to mix; 0 stands for the border. */
    private final long[] corner = new long[CORNERS];
    private final float[] weight = new float[CORNERS];
    private int corners;

    /** A word of the last fetch's result. */
    static int result(CtaSlot c, int channel) {
        return c.textureUnit.result[channel];
    }

    /** tex at the base level. */
    static void fetch(Globals g, CtaSlot c, long texture, int geometry, int layer, float x, float y, float z, int dx,
        int dy, int dz) {
        Texture t = texture(g, texture, geometry);
        c.textureUnit.sample(g, t, geometry, layer, x, y, z, dx, dy, dz, Math.max(t.sampler().minLevel(), 0));
    }

    /** tex.level. */
    static void fetchLevel(Globals g, CtaSlot c, long texture, int geometry, int layer, float x, float y, float z,
        int dx, int dy, int dz, float level) {
        Texture t = texture(g, texture, geometry);
        c.textureUnit.sample(g, t, geometry, layer, x, y, z, dx, dy, dz, level + t.sampler().levelBias());
    }

    /** tex.grad: the level of detail follows from the longer of two gradients. */
    static void fetchGradient(Globals g, CtaSlot c, long texture, int geometry, int layer, float x, float y, float z,
        int dx, int dy, int dz, float xByX, float yByX, float zByX, float xByY, float yByY, float zByY) {
        Texture t = texture(g, texture, geometry);
        TexelLevel base = t.levels().get(0);
        Sampler s = t.sampler();
        int dimensions = Geometry.ALL[geometry].dimensions;
        double width = s.normalized() ? base.width() : 1;
        double height = dimensions < 2 ? 0 : s.normalized() ? base.height() : 1;
        double depth = dimensions < 3 ? 0 : s.normalized() ? base.depth() : 1;
        double first = square(xByX * width) + square(yByX * height) + square(zByX * depth);
        double second = square(xByY * width) + square(yByY * height) + square(zByY * depth);
        double product = xByX * width * xByY * width + yByX * height * yByY * height + zByX * depth * zByY * depth;
        if (s.anisotropy() > 1 && (first != second || product != 0)) {
            throw unsupported("anisotropic filtering by gradients of unequal length");
        }
        double level = 0.5 * Math.log(Math.max(first, second)) / Math.log(2) + s.levelBias();
        c.textureUnit.sample(g, t, geometry, layer, x, y, z, dx, dy, dz, (float) level);
    }

    private static double square(double value) {
        return value * value;
    }

    /** tex with integers: indexes of a texel. Outside of the texture it returns zeros. */
    static void fetchTexel(Globals g, CtaSlot c, long texture, int geometry, int layer, int x, int y, int z, int dx,
        int dy, int dz, int level) {
        Texture t = g.objects().texture(texture);
        if (t.shape() != Texture.Shape.BUFFER || geometry != Geometry.ONE.ordinal()) {
            require(t, geometry);
        }
        boolean inside = level >= 0 && level < t.levels().size();
        TexelLevel texels = t.levels().get(inside ? level : 0);
        int slice = Geometry.ALL[geometry].layered() ? layer : z;
        inside &= isInside((long) x + dx, texels.width()) && isInside((long) y + dy, texels.height())
            && isInside((long) slice + dz, texels.depth());
        for (int channel = 0; channel < CHANNELS; channel++) {
            c.textureUnit.result[channel] = inside
                ? word(t, address(g, t, texels, x + dx, y + dy, slice + dz), channel) : 0;
        }
    }

    private static boolean isInside(long index, int length) {
        return index >= 0 && index < length;
    }

    /** tld4: one channel of the four texels that linear filtering would mix. */
    static void gather(Globals g, CtaSlot c, long texture, int geometry, int layer, float x, float y, float z, int dx,
        int dy, int dz, int channel) {
        Texture t = texture(g, texture, geometry);
        TextureUnit unit = c.textureUnit;
        TexelLevel texels = t.levels().get(0);
        Sampler s = t.sampler();
        unit.mix(g, t, texels, slice(t, geometry, layer), coordinate(x, texels.width(), s, s.modeX()),
            coordinate(y, texels.height(), s, s.modeY()), 0, dx, dy, dz);
        // Corners are in order of x, then y; the result begins at the lower left and goes round.
        unit.result[0] = unit.cornerWord(t, 2, channel);
        unit.result[1] = unit.cornerWord(t, 3, channel);
        unit.result[2] = unit.cornerWord(t, 1, channel);
        unit.result[3] = unit.cornerWord(t, 0, channel);
    }

    /** txq: a length of a level, or a count. Query 0 is the width, 1 height, 2 depth, 3 layers, 4 levels. */
    static int query(Globals g, long texture, int query, int level) {
        Texture t = g.objects().texture(texture);
        TexelLevel texels = t.levels().get(Math.clamp(level, 0, t.levels().size() - 1));
        boolean isVolume = t.shape() == Texture.Shape.VOLUME;
        return switch (query) {
            case 0 -> texels.width();
            case 1 -> texels.height();
            case 2 -> isVolume ? texels.depth() : 0;
            case 3 -> isVolume ? 0 : t.shape() == Texture.Shape.LAYERED_CUBE ? texels.depth() / 6 : texels.depth();
            default -> t.levels().size();
        };
    }

    private static Texture texture(Globals g, long number, int geometry) {
        Texture t = g.objects().texture(number);
        require(t, geometry);
        return t;
    }

    private static void require(Texture t, int geometry) {
        if (t.shape() != Geometry.ALL[geometry].shape) {
            throw unsupported("tex." + Geometry.ALL[geometry].ptxName + " of a texture of shape " + t.shape());
        }
    }

    private static DeviceFault unsupported(String what) {
        return new DeviceFault(DeviceFault.NOT_SUPPORTED, "not supported by the software GPU: " + what + Faults.line());
    }

    /** First slice of a layer: cubes have six each. The nearest layer stands for a missing one. */
    private static int slice(Texture t, int geometry, int layer) {
        if (!Geometry.ALL[geometry].layered()) {
            return 0;
        }
        int slices = t.shape() == Texture.Shape.LAYERED_CUBE ? 6 : 1;
        return Math.clamp(layer, 0, t.levels().get(0).depth() / slices - 1) * slices;
    }

    private void sample(Globals g, Texture t, int geometry, int layer, float x, float y, float z, int dx, int dy,
        int dz, float level) {
        int slice = slice(t, geometry, layer);
        Sampler s = t.sampler();
        int levels = t.levels().size();
        // NaN, from gradients that are not numbers, becomes the lowest level.
        float clamped = level > s.minLevel() ? Math.min(level, s.maxLevel()) : s.minLevel();
        clamped = Math.clamp(clamped, 0f, levels - 1f);
        if (!s.linearLevels() || levels == 1) {
            read(g, t, t.levels().get((int) Math.floor(clamped + 0.5f)), slice, x, y, z, dx, dy, dz);
            return;
        }
        int fixed = Math.round(clamped * FRACTION);
        int nearest = fixed >> FRACTION_BITS;
        float farther = (fixed & FRACTION - 1) / (float) FRACTION;
        read(g, t, t.levels().get(nearest), slice, x, y, z, dx, dy, dz);
        if (farther != 0 && t.isFloating()) {
            for (int channel = 0; channel < CHANNELS; channel++) {
                nearer[channel] = Float.intBitsToFloat(result[channel]);
            }
            read(g, t, t.levels().get(nearest + 1), slice, x, y, z, dx, dy, dz);
            for (int channel = 0; channel < CHANNELS; channel++) {
                float value = (1 - farther) * nearer[channel] + farther * Float.intBitsToFloat(result[channel]);
                result[channel] = FloatMath.computedBits(value);
            }
        }
    }

    /** Reads one level. */
    private void read(Globals g, Texture t, TexelLevel texels, int slice, float x, float y, float z, int dx, int dy,
        int dz) {
        Sampler s = t.sampler();
        if (t.shape() == Texture.Shape.CUBE || t.shape() == Texture.Shape.LAYERED_CUBE) {
            readCube(g, t, texels, slice, x, y, z);
            return;
        }
        boolean isVolume = t.shape() == Texture.Shape.VOLUME;
        double u = coordinate(x, texels.width(), s, s.modeX());
        double v = coordinate(y, texels.height(), s, s.modeY());
        double w = isVolume ? coordinate(z, texels.depth(), s, s.modeZ()) : 0;
        if (s.linear()) {
            mix(g, t, texels, slice, u, v, w, dx, dy, dz);
            sum(t);
        } else {
            corner[0] = texel(g, t, texels, (int) Math.floor(u) + dx, (int) Math.floor(v) + dy,
                isVolume ? s.modeZ().inside((int) Math.floor(w) + dz, texels.depth()) : slice);
            nearest(t);
        }
    }

    private void nearest(Texture t) {
        for (int channel = 0; channel < CHANNELS; channel++) {
            result[channel] = cornerWord(t, 0, channel);
        }
    }

    /** A coordinate in texels, bounded; NaN becomes 0. */
    private static double coordinate(float coordinate, int length, Sampler s, AddressMode mode) {
        double at = coordinate;
        if (s.normalized()) {
            // Exact for coordinates of every size, as the difference of a float and a whole number.
            at -= mode == AddressMode.WRAP ? Math.floor(at) : mode == AddressMode.MIRROR ? 2 * Math.floor(at / 2) : 0;
            at *= length;
        }
        return at >= -MAX_INDEX ? Math.min(at, MAX_INDEX) : at < 0 ? -MAX_INDEX : 0;
    }

    /** Finds the texels that linear filtering mixes, and their weights. */
    private void mix(Globals g, Texture t, TexelLevel texels, int slice, double u, double v, double w, int dx, int dy,
        int dz) {
        boolean isVolume = t.shape() == Texture.Shape.VOLUME;
        int x = fixed(u);
        int y = fixed(v);
        int z = isVolume ? fixed(w) : 0;
        corners = isVolume ? CORNERS : CORNERS / 2;
        for (int i = 0; i < corners; i++) {
            int index = (z >> FRACTION_BITS) + (i >> 2) + dz;
            weight[i] = part(x, i & 1) * part(y, i >> 1 & 1) * (isVolume ? part(z, i >> 2) : 1);
            corner[i] = texel(g, t, texels, (x >> FRACTION_BITS) + (i & 1) + dx,
                (y >> FRACTION_BITS) + (i >> 1 & 1) + dy,
                isVolume ? t.sampler().modeZ().inside(index, texels.depth()) : slice);
        }
    }

    /** Distance from the centre of the first texel in units of 1/256 texel. */
    private static int fixed(double coordinate) {
        // Farther away every mode reads one texel only, or its index has lost the fraction.
        double bounded = Math.clamp(coordinate, -MAX_INDEX / FRACTION, MAX_INDEX / FRACTION);
        return (int) Math.floor((bounded - 0.5) * FRACTION + 0.5);
    }

    private static float part(int fixed, int corner) {
        int fraction = fixed & FRACTION - 1;
        return (corner == 1 ? fraction : FRACTION - fraction) / (float) FRACTION;
    }

    /** Address of a texel after the address modes of the first two dimensions; 0 for the border. */
    private static long texel(Globals g, Texture t, TexelLevel texels, int x, int y, int z) {
        int column = t.sampler().modeX().inside(x, texels.width());
        int row = t.sampler().modeY().inside(y, texels.height());
        return column < 0 || row < 0 || z < 0 ? 0 : address(g, t, texels, column, row, z);
    }

    private static long address(Globals g, Texture t, TexelLevel texels, int x, int y, int z) {
        int bytes = t.texelBytes();
        // The memory may have been freed since the texture was created.
        return Mem.check(g, texels.at(x, y, z, bytes), Integer.numberOfTrailingZeros(bytes));
    }

    /** Adds up the texels by their weights. */
    private void sum(Texture t) {
        for (int channel = 0; channel < CHANNELS; channel++) {
            if (channel >= t.channels()) {
                result[channel] = 0; // an H200 also returns 0 for the last channel
                continue;
            }
            float value = 0;
            for (int i = 0; i < corners; i++) {
                if (weight[i] != 0) {
                    value += weight[i] * Float.intBitsToFloat(cornerWord(t, i, channel));
                }
            }
            result[channel] = FloatMath.computedBits(value);
        }
    }

    private int cornerWord(Texture t, int i, int channel) {
        return corner[i] != 0 ? word(t, corner[i], channel)
            : channel < t.channels() ? border(t, channel) : 0;
    }

    /** A channel of the texel at an address, as a float's bits or an integer. */
    private static int word(Texture t, long address, int channel) {
        if (channel >= t.channels()) {
            return 0;
        }
        long at = address + (long) channel * t.format().bytes();
        if (!t.isFloating()) {
            return t.format().integer(at);
        }
        return Float.floatToRawIntBits(t.srgb() && channel < 3 ? LINEAR_OF_SRGB[RawMem.ldU8(at)]
            : t.format().fraction(at));
    }

    /** The border of a channel. As on an H200, a fraction stays within the fractions of the format. */
    private static int border(Texture t, int channel) {
        int word = t.sampler().border().word(channel);
        if (!t.isFloating() || t.format().isFloating()) {
            return word;
        }
        return Float.floatToRawIntBits(Math.clamp(Float.intBitsToFloat(word), t.format().leastFraction(), 1f));
    }

    /** Reads a cube by a direction, which its largest coordinate leads to a face. */
    private void readCube(Globals g, Texture t, TexelLevel texels, int slice, double x, double y, double z) {
        double ax = Math.abs(x);
        double ay = Math.abs(y);
        double az = Math.abs(z);
        int face = az >= ax && az >= ay ? z < 0 ? 5 : 4 : ay >= ax ? y < 0 ? 3 : 2 : x < 0 ? 1 : 0;
        double largest = face >= 4 ? az : face >= 2 ? ay : ax;
        double across = switch (face) {
            case 0 -> -z;
            case 1 -> z;
            case 5 -> -x;
            default -> x;
        };
        double down = face == 2 ? z : face == 3 ? -z : -y;
        Sampler s = t.sampler();
        double u = coordinate((float) ((across / largest + 1) / 2), texels.width(), s, AddressMode.CLAMP);
        double v = coordinate((float) ((down / largest + 1) / 2), texels.height(), s, AddressMode.CLAMP);
        if (!s.linear()) {
            int last = texels.width() - 1;
            corner[0] = address(g, t, texels, Math.clamp((int) Math.floor(u), 0, last),
                Math.clamp((int) Math.floor(v), 0, last), slice + face);
            nearest(t);
            return;
        }
        mix(g, t, texels, slice + face, u, v, 0, 0, 0, 0);
        if (s.seamless()) {
            CubeEdges.cross(g, t, texels, slice, face, fixed(u) >> FRACTION_BITS, fixed(v) >> FRACTION_BITS, corner,
                weight);
        }
        sum(t);
    }

    /** Address of a texel of a face, whose indexes lie within it. */
    static long faceTexel(Globals g, Texture t, TexelLevel texels, int x, int y, int slice) {
        return address(g, t, texels, x, y, slice);
    }
}
