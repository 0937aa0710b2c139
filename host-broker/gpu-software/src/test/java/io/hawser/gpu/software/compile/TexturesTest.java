package io.hawser.gpu.software.compile;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.gpu.software.exec.DeviceFault;
import io.hawser.gpu.software.exec.Sampler;
import io.hawser.gpu.software.exec.Sampler.AddressMode;
import io.hawser.gpu.software.exec.TexelFormat;
import io.hawser.gpu.software.exec.TexelLevel;
import io.hawser.gpu.software.exec.Texture;
import io.hawser.gpu.software.exec.Texture.Shape;
import io.hawser.gpu.software.ptx.PtxException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Fetches in kernels. The expected values come from the formulas of the CUDA programming guide, computed dimension by
 * dimension in doubles.
 */
class TexturesTest {
    private static final Sampler.Border BORDER = new Sampler.Border(Float.floatToRawIntBits(1000),
        Float.floatToRawIntBits(2000), 3, 4);
    private static final float NEAR = 1e-3f;

    private Device device;

    /** A kernel for each instruction: reads eight numbers for each thread and writes the four words of the result. */
    private static String kernels() {
        StringBuilder text = new StringBuilder(".version 8.0\n.target sm_75\n.address_size 64\n");
        String[][] all = {{"one", "tex.1d.v4.f32.f32", "{%f0}", ""}, {"two", "tex.2d.v4.f32.f32", "{%f0, %f1}", ""},
            {"three", "tex.3d.v4.f32.f32", "{%f0, %f1, %f2, %f2}", ""},
            {"oneLayered", "tex.a1d.v4.f32.f32", "{%r0, %f0}", ""},
            {"twoLayered", "tex.a2d.v4.f32.f32", "{%r0, %f0, %f1, %f1}", ""},
            {"cube", "tex.cube.v4.f32.f32", "{%f0, %f1, %f2, %f2}", ""},
            {"cubeLayered", "tex.acube.v4.f32.f32", "{%r0, %f0, %f1, %f2}", ""},
            {"integers", "tex.1d.v4.f32.s32", "{%r1}", ""}, {"indexes", "tex.2d.v4.f32.s32", "{%r1, %r2}", ""},
            {"level", "tex.level.2d.v4.f32.f32", "{%f0, %f1}", ", %f4"},
            {"gradient", "tex.grad.2d.v4.f32.f32", "{%f0, %f1}", ", {%f4, %f5}, {%f6, %f7}"},
            {"offset", "tex.2d.v4.f32.f32", "{%f0, %f1}", ", {3, -2}"},
            {"green", "tld4.g.2d.v4.f32.f32", "{%f0, %f1}", ""}};
        for (String[] kernel : all) {
            text.append(".visible .entry ").append(kernel[0]).append("""
                (.param .u64 t, .param .u64 in, .param .u64 out) {
                .reg .f32 %f<8>; .reg .f32 %o<4>; .reg .b32 %r<4>; .reg .b64 %d<6>; .reg .pred %p;
                ld.param.u64 %d0, [t]; ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out];
                mov.u32 %r0, %tid.x; mul.wide.u32 %d3, %r0, 32; add.u64 %d1, %d1, %d3;
                mul.wide.u32 %d3, %r0, 16; add.u64 %d2, %d2, %d3;
                ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%d1]; ld.global.v4.f32 {%f4, %f5, %f6, %f7}, [%d1+16];
                cvt.rzi.s32.f32 %r0, %f3; cvt.rzi.s32.f32 %r1, %f0; cvt.rzi.s32.f32 %r2, %f1;
                """).append(kernel[1]).append(" {%o0, %o1, %o2, %o3}|%p, [%d0, ").append(kernel[2]).append(']')
                .append(kernel[3]).append(";\n@!%p trap;\nst.global.v4.f32 [%d2], {%o0, %o1, %o2, %o3};\nret;\n}\n");
        }
        return text.toString();
    }

    @BeforeEach
    void open() throws PtxException {
        device = new Device(kernels());
    }

    @AfterEach
    void close() {
        device.close();
    }

    private static Sampler sampler(AddressMode mode, boolean linear, boolean normalized) {
        return new Sampler(mode, mode, mode, linear, normalized, false, 0, 0, 0, BORDER, false, 0);
    }

    private TexelLevel level(float[] texels, int width, int height, int depth) {
        return new TexelLevel(device.put(texels), width, height, depth, 4L * width);
    }

    private long texture(Shape shape, Sampler sampler, TexelLevel... levels) {
        return device.memory.objects().add(this,
            new Texture(shape, TexelFormat.F32, 1, false, false, List.of(levels), sampler));
    }

    /** Fetches at points of eight numbers; returns the first words of the results. */
    private float[] fetch(String kernel, long texture, List<float[]> points) {
        int[] words = words(kernel, texture, points);
        float[] result = new float[points.size()];
        for (int i = 0; i < result.length; i++) {
            result[i] = Float.intBitsToFloat(words[4 * i]);
        }
        return result;
    }

    private int[] words(String kernel, long texture, List<float[]> points) {
        float[] in = new float[8 * points.size()];
        for (int i = 0; i < points.size(); i++) {
            System.arraycopy(points.get(i), 0, in, 8 * i, points.get(i).length);
        }
        long out = device.allocate(16L * points.size());
        device.launch(kernel, 1, points.size(), texture, device.put(in), out);
        return device.ints(out, 4 * points.size());
    }

    private static float[] texels(int count) {
        float[] texels = new float[count];
        for (int i = 0; i < count; i++) {
            texels[i] = (i * 37 + i / 7 * 11) % 256;
        }
        return texels;
    }

    /** The value at an index of one dimension, by the definition of each mode. */
    private static double at(AddressMode mode, int index, int length, java.util.function.IntToDoubleFunction inside) {
        int i = index;
        switch (mode) {
            case CLAMP -> i = Math.max(0, Math.min(length - 1, i));
            case WRAP -> {
                while (i < 0) {
                    i += length;
                }
                i %= length;
            }
            case MIRROR -> {
                while (i < 0 || i >= length) {
                    i = i < 0 ? -1 - i : 2 * length - 1 - i;
                }
            }
            case BORDER -> {
                if (i < 0 || i >= length) {
                    return 1000;
                }
            }
        }
        return inside.applyAsDouble(i);
    }

    /** Filters one dimension. */
    private static double filter(Sampler s, AddressMode mode, double u, int length,
        java.util.function.IntToDoubleFunction inside) {
        if (!s.linear()) {
            return at(mode, (int) Math.floor(u), length, inside);
        }
        double from = Math.floor(u - 0.5);
        double part = Math.rint((u - 0.5 - from) * 256) / 256;
        return (1 - part) * at(mode, (int) from, length, inside) + part * at(mode, (int) from + 1, length, inside);
    }

    private static List<float[]> points(int dimensions, int... lengths) {
        List<float[]> points = new ArrayList<>();
        Random random = new Random(lengths[0]);
        for (int i = 0; i < 512; i++) {
            float[] point = new float[8];
            for (int k = 0; k < dimensions; k++) {
                // Multiples of 1/256 texel, which linear filtering takes exactly.
                point[k] = (random.nextInt(lengths[k] * 768) - lengths[k] * 256) / 256f;
            }
            points.add(point);
        }
        return points;
    }

    @ParameterizedTest
    @EnumSource(AddressMode.class)
    void shouldFilterInEveryMode(AddressMode mode) {
        int width = 16;
        int height = 8;
        int depth = 4;
        float[] texels = texels(width * height * depth);
        for (int i = 0; i < 4; i++) {
            boolean normalized = (i & 2) != 0;
            if (!normalized && (mode == AddressMode.WRAP || mode == AddressMode.MIRROR)) {
                continue; // the descriptor's modes become CLAMP
            }
            Sampler s = sampler(mode, (i & 1) != 0, normalized);
            List<float[]> points = points(3, width, height, depth);
            List<float[]> scaled = points.stream().map(p -> normalized
                ? new float[] {p[0] / width, p[1] / height, p[2] / depth} : p).toList();
            float[] one = fetch("one", texture(Shape.FLAT, s, level(texels, width, 1, 1)), scaled);
            float[] two = fetch("two", texture(Shape.FLAT, s, level(texels, width, height, 1)), scaled);
            float[] three = fetch("three", texture(Shape.VOLUME, s, level(texels, width, height, depth)), scaled);
            for (int k = 0; k < points.size(); k++) {
                float[] p = points.get(k);
                String what = mode + " linear=" + s.linear() + " normalized=" + normalized + " at "
                    + java.util.Arrays.toString(p);
                // One dimension is one row, read at its upper edge.
                assertEquals(filter(s, mode, 0, 1, y -> filter(s, mode, p[0], width, x -> texels[x])), one[k], NEAR,
                    what);
                assertEquals(filter(s, mode, p[1], height,
                    y -> filter(s, mode, p[0], width, x -> texels[y * width + x])), two[k], NEAR, what);
                assertEquals(filter(s, mode, p[2], depth, z -> filter(s, mode, p[1], height,
                    y -> filter(s, mode, p[0], width, x -> texels[(z * height + y) * width + x]))), three[k], NEAR,
                    what);
            }
        }
    }

    @Test
    void shouldRepeatByThePeriodOfAMode() {
        float[] texels = texels(64);
        Random random = new Random(7);
        List<float[]> points = new ArrayList<>();
        List<float[]> shifted = new ArrayList<>();
        List<float[]> reflected = new ArrayList<>();
        for (int i = 0; i < 512; i++) {
            float x = random.nextInt(1 << 11) / 2048f;
            float y = random.nextInt(1 << 11) / 2048f;
            points.add(new float[] {x, y});
            shifted.add(new float[] {x + 2 * random.nextInt(-9, 9), y + 2 * random.nextInt(-9, 9)});
            reflected.add(new float[] {-x, 2 - y});
        }
        for (AddressMode mode : List.of(AddressMode.WRAP, AddressMode.MIRROR)) {
            long texture = texture(Shape.FLAT, sampler(mode, true, true), level(texels, 8, 8, 1));
            float[] plain = fetch("two", texture, points);
            org.junit.jupiter.api.Assertions.assertArrayEquals(plain, fetch("two", texture, shifted), NEAR);
            if (mode == AddressMode.MIRROR) {
                org.junit.jupiter.api.Assertions.assertArrayEquals(plain, fetch("two", texture, reflected), NEAR);
            }
        }
    }

    @Test
    void shouldClampLayers() {
        float[] texels = texels(8 * 4 * 3);
        Sampler s = sampler(AddressMode.CLAMP, false, false);
        long flat = texture(Shape.LAYERED, s, level(texels, 8, 1, 12));
        long layered = texture(Shape.LAYERED, s, level(texels, 8, 4, 3));
        int[] layers = {-5, 0, 1, 2, 99};
        for (int layer : layers) {
            List<float[]> point = List.of(new float[] {2.5f, 3.5f, 0, layer});
            assertEquals(texels[Math.clamp(layer, 0, 11) * 8 + 2], fetch("oneLayered", flat, point)[0]);
            assertEquals(texels[Math.clamp(layer, 0, 2) * 32 + 3 * 8 + 2], fetch("twoLayered", layered, point)[0]);
        }
    }

    @Test
    void shouldConvertEveryFormat() {
        Random random = new Random(3);
        for (TexelFormat format : TexelFormat.values()) {
            for (int channels : new int[] {1, 2, 4}) {
                byte[] bytes = new byte[64 * channels * format.bytes()];
                random.nextBytes(bytes);
                long address = device.allocate(bytes.length);
                device.at(address, bytes.length).copyFrom(MemorySegment.ofArray(bytes));
                for (boolean fractions : new boolean[] {false, true}) {
                    if (fractions && (format.isFloating() || format.isWide())) {
                        continue;
                    }
                    Texture t = new Texture(Shape.BUFFER, format, channels, fractions, false,
                        List.of(new TexelLevel(address, 64, 1, 1, 0)), sampler(AddressMode.CLAMP, false, false));
                    long texture = device.memory.objects().add(this, t);
                    List<float[]> points = new ArrayList<>();
                    for (int i = 0; i < 64; i++) {
                        points.add(new float[] {i});
                    }
                    int[] words = words("integers", texture, points);
                    for (int i = 0; i < 64 * 4; i++) {
                        int expected = i % 4 < channels ? expected(device.at(address, bytes.length), format, fractions,
                            i / 4 * channels + i % 4) : 0;
                        assertEquals(expected, words[i], format + " channels=" + channels + " fractions=" + fractions);
                    }
                }
            }
        }
    }

    @Test
    void shouldKeepTheBorderWithinTheFractionsOfTheFormat() {
        for (TexelFormat format : List.of(TexelFormat.U8, TexelFormat.S8, TexelFormat.U16, TexelFormat.S16)) {
            for (float border : new float[] {-2.5f, 0.25f, 2.5f}) {
                int bits = Float.floatToIntBits(border);
                AddressMode mode = AddressMode.BORDER;
                Texture t = new Texture(Shape.FLAT, format, 1, true, false,
                    List.of(new TexelLevel(device.allocate(16), 2, 2, 1, 8)),
                    new Sampler(mode, mode, mode, false, false, false, 0, 0, 0,
                        new Sampler.Border(bits, bits, bits, bits), false, 0));
                float least = format == TexelFormat.U8 || format == TexelFormat.U16 ? 0 : -1;
                float expected = Math.max(least, Math.min(1, border));
                assertEquals(expected, fetch("two", device.memory.objects().add(this, t),
                    List.of(new float[] {5, 5}))[0], format + " " + border);
            }
        }
    }

    private static int expected(MemorySegment memory, TexelFormat format, boolean fraction, int index) {
        long bits = 0;
        for (int b = 0; b < format.bytes(); b++) {
            bits |= (memory.get(ValueLayout.JAVA_BYTE, (long) index * format.bytes() + b) & 0xFFL) << 8 * b;
        }
        int unused = 64 - 8 * format.bytes();
        boolean signed = format.name().startsWith("S");
        long value = signed ? bits << unused >> unused : bits;
        if (format == TexelFormat.F16) {
            return Float.floatToRawIntBits(Float.float16ToFloat((short) bits));
        }
        if (!fraction) {
            return (int) value;
        }
        double largest = Math.pow(2, 8 * format.bytes() - (signed ? 1 : 0)) - 1;
        return Float.floatToRawIntBits((float) Math.max(-1, value / largest));
    }

    @Test
    void shouldMakeLinearValuesOfSrgb() {
        byte[] bytes = new byte[256 * 4];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) (i / 4);
        }
        long address = device.allocate(bytes.length);
        device.at(address, bytes.length).copyFrom(MemorySegment.ofArray(bytes));
        long texture = device.memory.objects().add(this, new Texture(Shape.BUFFER, TexelFormat.U8, 4, true, true,
            List.of(new TexelLevel(address, 256, 1, 1, 0)), sampler(AddressMode.CLAMP, false, false)));
        for (int value = 0; value < 256; value++) {
            int[] words = words("integers", texture, List.of(new float[] {value}));
            double v = value / 255.0;
            double expected = v <= 0.04045 ? v / 12.92 : Math.exp(2.4 * Math.log((v + 0.055) / 1.055));
            assertEquals(expected, Float.intBitsToFloat(words[0]), 1e-6);
            assertEquals(v, Float.intBitsToFloat(words[3]), 1e-6, "the fourth channel stays linear");
        }
    }

    @Test
    void shouldReturnZerosOutsideOfLinearMemory() {
        long texture = texture(Shape.BUFFER, sampler(AddressMode.CLAMP, false, false), level(texels(10), 10, 1, 1));
        for (int index : new int[] {-1, 10, 1 << 30, -(1 << 30)}) {
            int[] words = words("integers", texture, List.of(new float[] {index}));
            assertEquals(List.of(0, 0, 0, 0), java.util.Arrays.stream(words).boxed().toList());
        }
        long image = texture(Shape.FLAT, sampler(AddressMode.WRAP, false, true), level(texels(10), 5, 2, 1));
        assertEquals(texels(10)[8], fetch("indexes", image, List.of(new float[] {3, 1}))[0]);
        assertEquals(0, fetch("indexes", image, List.of(new float[] {3, 2}))[0]);
    }

    @Test
    void shouldSelectAndMixLevels() {
        TexelLevel[] levels = new TexelLevel[4];
        for (int i = 0; i < 4; i++) {
            float[] texels = new float[64 >> 2 * i];
            java.util.Arrays.fill(texels, i * 100);
            levels[i] = level(texels, 8 >> i, 8 >> i, 1);
        }
        for (boolean linear : new boolean[] {false, true}) {
            Sampler s = new Sampler(AddressMode.CLAMP, AddressMode.CLAMP, AddressMode.CLAMP, true, true, linear, 0.25f,
                0.5f, 2.75f, BORDER, false, 0);
            long texture = texture(Shape.FLAT, s, levels);
            for (int i = -8; i < 64; i++) {
                float asked = i / 16f;
                double level = Math.min(2.75, Math.max(0.5, asked + 0.25));
                double expected = 100 * (linear ? level : Math.floor(level + 0.5));
                assertEquals(expected, fetch("level", texture, List.of(new float[] {0.3f, 0.6f, 0, 0, asked}))[0],
                    NEAR, "level " + asked);
                // A step of 2^level texels of the largest level, which is eight texels wide.
                float step = (float) Math.pow(2, asked) / 8;
                assertEquals(expected, fetch("gradient", texture,
                    List.of(new float[] {0.3f, 0.6f, 0, 0, step / 2, 0, 0, step}))[0], linear ? 0.4 : NEAR,
                    "gradient " + step);
            }
            assertEquals(50 * (linear ? 1 : 2), fetch("two", texture, List.of(new float[] {0.3f, 0.6f}))[0], NEAR,
                "the base level, but not below the clamp");
            assertEquals(50 * (linear ? 1 : 2), fetch("level", texture,
                List.of(new float[] {0.3f, 0.6f, 0, 0, Float.NaN}))[0], NEAR, "a level that is no number");
        }
    }

    @Test
    void shouldRefuseAnisotropyAtTheFetchThatNeedsIt() {
        Sampler s = new Sampler(AddressMode.CLAMP, AddressMode.CLAMP, AddressMode.CLAMP, true, true, false, 0, 0, 0,
            BORDER, false, 16);
        long texture = texture(Shape.FLAT, s, level(texels(64), 8, 8, 1));
        assertEquals(texels(64)[9], fetch("gradient", texture,
            List.of(new float[] {1.5f / 8, 1.5f / 8, 0, 0, 0.125f, 0, 0, 0.125f}))[0], NEAR);
        DeviceFault fault = assertThrows(DeviceFault.class, () -> fetch("gradient", texture,
            List.of(new float[] {1.5f / 8, 1.5f / 8, 0, 0, 0.5f, 0, 0, 0.125f})));
        assertEquals(DeviceFault.NOT_SUPPORTED, fault.cuResult());
        assertTrue(fault.getMessage().contains("anisotropic"), fault.getMessage());
    }

    @Test
    void shouldGatherAndOffset() {
        float[] texels = texels(16 * 8 * 2);
        TexelLevel pairs = new TexelLevel(device.put(texels), 16, 8, 1, 16 * 8);
        long gathered = device.memory.objects().add(this, new Texture(Shape.FLAT, TexelFormat.F32, 2, false, false,
            List.of(pairs), sampler(AddressMode.CLAMP, false, false)));
        long image = texture(Shape.FLAT, sampler(AddressMode.CLAMP, false, false), level(texels, 16, 8, 1));
        for (int y = 1; y < 8; y++) {
            for (int x = 1; x < 16; x++) {
                int[] words = words("green", gathered, List.of(new float[] {x, y}));
                int[][] order = {{x - 1, y}, {x, y}, {x, y - 1}, {x - 1, y - 1}};
                for (int i = 0; i < 4; i++) {
                    assertEquals(texels[(order[i][1] * 16 + order[i][0]) * 2 + 1], Float.intBitsToFloat(words[i]));
                }
                int column = Math.clamp(x + 3, 0, 15);
                int row = Math.clamp(y - 2, 0, 7);
                assertEquals(texels[row * 16 + column],
                    fetch("offset", image, List.of(new float[] {x + 0.5f, y + 0.5f}))[0]);
            }
        }
    }

    /** The direction to a place on a face, by the table of the CUDA programming guide. */
    private static float[] direction(int face, double s, double t, float layer) {
        double[] d = switch (face) {
            case 0 -> new double[] {1, -t, -s};
            case 1 -> new double[] {-1, -t, s};
            case 2 -> new double[] {s, 1, t};
            case 3 -> new double[] {s, -1, -t};
            case 4 -> new double[] {s, -t, 1};
            default -> new double[] {-s, -t, -1};
        };
        return new float[] {(float) d[0], (float) d[1], (float) d[2], layer};
    }

    @Test
    void shouldReadFacesOfCubes() {
        float[] texels = texels(4 * 4 * 12);
        long cube = texture(Shape.CUBE, sampler(AddressMode.CLAMP, false, true), level(texels, 4, 4, 6));
        long cubes = texture(Shape.LAYERED_CUBE, sampler(AddressMode.CLAMP, false, true), level(texels, 4, 4, 12));
        for (int face = 0; face < 6; face++) {
            for (int i = 0; i < 16; i++) {
                double t = (Math.floorDiv(i, 4) + 0.5) / 2 - 1;
                List<float[]> at = List.of(direction(face, (i % 4 + 0.5) / 2 - 1, t, 1));
                assertEquals(texels[face * 16 + i], fetch("cube", cube, at)[0], "face " + face + " texel " + i);
                assertEquals(texels[96 + face * 16 + i], fetch("cubeLayered", cubes, at)[0]);
            }
        }
    }

    // A function of the direction alone has no seams, so filtering across an edge stays near it.
    @Test
    void shouldFilterAcrossTheEdgesOfSeamlessCubes() {
        int size = 64;
        float[] texels = new float[6 * size * size];
        for (int face = 0; face < 6; face++) {
            for (int i = 0; i < size * size; i++) {
                double t = (2.0 * Math.floorDiv(i, size) + 1) / size - 1;
                float[] d = direction(face, (2 * (i % size) + 1.0) / size - 1, t, 0);
                texels[face * size * size + i] = field(d);
            }
        }
        Sampler seamless = new Sampler(AddressMode.CLAMP, AddressMode.CLAMP, AddressMode.CLAMP, true, true, false, 0,
            0, 0, BORDER, true, 0);
        long cube = texture(Shape.CUBE, seamless, level(texels, size, size, 6));
        Random random = new Random(11);
        for (int face = 0; face < 6; face++) {
            for (int i = 0; i < 400; i++) {
                double edge = random.nextBoolean() ? 0.9999 : -0.9999;
                double along = random.nextDouble() * 2 - 1;
                float[] d = random.nextBoolean() ? direction(face, edge, along, 0) : direction(face, along, edge, 0);
                // Neighbouring texels differ by up to 3/64 of the field's slope.
                assertEquals(field(d), fetch("cube", cube, List.of(d))[0], 1.0, "face " + face);
            }
        }
        float[] corner = fetch("cube", cube, List.of(new float[] {1, 1, 1}));
        assertEquals((texels[(size - 1)] + texels[2 * size * size + size * size - 1]
            + texels[4 * size * size + size - 1]) / 3 - 0.0, corner[0], 40, "the three texels of a corner");
    }

    private static float field(float[] d) {
        double length = Math.sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
        return (float) ((d[0] * 16 + d[1] * 9 + d[2] * 5) / length);
    }

    @ParameterizedTest
    @CsvSource({"three, FLAT", "two, VOLUME", "two, LAYERED", "oneLayered, FLAT", "cube, FLAT", "two, CUBE",
        "cubeLayered, CUBE", "one, BUFFER", "integers, VOLUME"})
    void shouldRefuseAFetchOfAnotherShape(String kernel, Shape shape) {
        long texture = texture(shape, sampler(AddressMode.CLAMP, false, true), level(texels(96), 4, 4, 6));
        DeviceFault fault = assertThrows(DeviceFault.class,
            () -> fetch(kernel, texture, List.of(new float[] {0, 0, 0})));
        assertEquals(DeviceFault.NOT_SUPPORTED, fault.cuResult());
    }

    // A fetch reads its own texels for coordinates of every size, and no other memory.
    @Test
    void shouldReadOnlyTheTextureForAnyCoordinates() {
        Random random = new Random(5);
        float[] ends = {0, -0f, 1, -1, 1e-40f, 0.99999994f, 131072, 1e9f, -1e9f, 3e38f, -3e38f, Float.POSITIVE_INFINITY,
            Float.NEGATIVE_INFINITY, Float.NaN};
        List<float[]> points = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            float[] point = new float[8];
            for (int k = 0; k < 8; k++) {
                point[k] = random.nextBoolean() ? ends[random.nextInt(ends.length)]
                    : Float.intBitsToFloat(random.nextInt());
            }
            points.add(point);
        }
        for (AddressMode mode : AddressMode.values()) {
            for (int i = 0; i < 4; i++) {
                Sampler plain = sampler(mode, (i & 1) != 0, (i & 2) != 0);
                Sampler s = new Sampler(mode, mode, mode, plain.linear(), plain.normalized(), true, 0, -5, 5,
                    new Sampler.Border(0x40E00000, 0, 0, 0), true, 0);
                float[] sevens = new float[96];
                java.util.Arrays.fill(sevens, 7);
                for (String kernel : List.of("one", "two", "three", "oneLayered", "twoLayered", "cube", "cubeLayered",
                    "level", "gradient", "offset")) {
                    Shape shape = switch (kernel) {
                        case "three" -> Shape.VOLUME;
                        case "oneLayered", "twoLayered" -> Shape.LAYERED;
                        case "cube" -> Shape.CUBE;
                        case "cubeLayered" -> Shape.LAYERED_CUBE;
                        default -> Shape.FLAT;
                    };
                    long texture = texture(shape, s, level(sevens, 4, 4, 6), level(sevens, 2, 2, 6));
                    for (float value : fetch(kernel, texture, points)) {
                        assertEquals(7, value, 1e-4, kernel + " " + s);
                    }
                    device.memory.objects().remove(texture);
                }
            }
        }
    }

    @Test
    void shouldFaultForFreedMemoryAndDestroyedTextures() {
        TexelLevel level = level(texels(64), 8, 8, 1);
        long texture = texture(Shape.FLAT, sampler(AddressMode.CLAMP, false, false), level);
        device.memory.markFree(level.address(), 256);
        DeviceFault fault = assertThrows(DeviceFault.class, () -> fetch("two", texture, List.of(new float[] {1, 1})));
        assertEquals(DeviceFault.ILLEGAL_ADDRESS, fault.cuResult());
        assertTrue(device.memory.objects().remove(texture));
        long other = texture(Shape.FLAT, sampler(AddressMode.CLAMP, false, false), level(texels(64), 8, 8, 1));
        assertTrue(other != texture);
        fault = assertThrows(DeviceFault.class, () -> fetch("two", texture, List.of(new float[] {1, 1})));
        assertEquals(DeviceFault.LAUNCH_FAILED, fault.cuResult());
        assertThrows(DeviceFault.class, () -> fetch("two", 0, List.of(new float[] {1, 1})));
        assertThrows(DeviceFault.class, () -> fetch("two", -1, List.of(new float[] {1, 1})));
    }
}
