package io.hawser.gpu.software.compile;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.gpu.software.exec.DeviceFault;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Compares kernels that nvcc compiled, in four builds, with results computed in Java. */
class KernelsTest {
    private static final ValueLayout.OfFloat F32 = ValueLayout.JAVA_FLOAT_UNALIGNED;
    private static final ValueLayout.OfDouble F64 = ValueLayout.JAVA_DOUBLE_UNALIGNED;
    private static final ValueLayout.OfLong I64 = ValueLayout.JAVA_LONG_UNALIGNED;

    private Device device;

    @AfterEach
    void close() {
        if (device != null) {
            device.close();
        }
    }

    private Device open(String build) throws Exception {
        device = new Device(Device.resource("kernels-" + build + ".ptx"));
        return device;
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "fast", "debug"})
    void shouldAddVectors(String build) throws Exception {
        Device d = open(build);
        float[] a = new float[1000];
        float[] b = new float[1000];
        float[] sum = new float[1000];
        for (int i = 0; i < 1000; i++) {
            a[i] = i * 0.5f;
            b[i] = 1000 - i;
            sum[i] = a[i] + b[i];
        }
        long c = d.allocate(4000);
        d.launch("vectorAdd", 8, 128, c, d.put(a), d.put(b), 1000);
        assertArrayEquals(sum, d.at(c, 4000).toArray(F32));
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "fast", "debug"})
    void shouldMultiplyTiledMatrices(String build) throws Exception {
        Device d = open(build);
        int n = 64;
        Random random = new Random(7);
        float[] a = new float[n * n];
        float[] b = new float[n * n];
        for (int i = 0; i < n * n; i++) {
            a[i] = random.nextFloat() + 0.5f;
            b[i] = random.nextFloat() - 0.5f;
        }
        for (int tile : new int[] {16, 32}) {
            long c = d.allocate(4L * n * n);
            d.launch("matrixMul" + tile, new int[] {n / tile, n / tile, 1}, new int[] {tile, tile, 1}, 0, c, d.put(a),
                d.put(b), n);
            MemorySegment got = d.at(c, 4L * n * n);
            for (int i = 0; i < n * n; i++) {
                float sum = 0;
                float plain = 0;
                for (int k = 0; k < n; k++) {
                    sum = Math.fma(a[i / n * n + k], b[k * n + i % n], sum);
                    plain = a[i / n * n + k] * b[k * n + i % n] + plain;
                }
                assertEquals(build.equals("debug") ? plain : sum, got.getAtIndex(F32, i), build.equals("debug")
                    ? 1e-4f : 0f);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "fast", "debug"})
    void shouldReduceByShufflesAndAtomics(String build) throws Exception {
        Device d = open(build);
        int[] in = new Random(3).ints(5000, -1000, 1000).toArray();
        long out = d.put(0);
        d.launch("sumReduce", 20, 256, out, d.put(in), 5000);
        assertEquals(java.util.Arrays.stream(in).sum(), d.ints(out, 1)[0]);
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "fast", "debug"})
    void shouldCountBytesInSharedHistograms(String build) throws Exception {
        Device d = open(build);
        byte[] in = new byte[10_000];
        new Random(4).nextBytes(in);
        int[] expected = new int[256];
        for (byte b : in) {
            expected[b & 0xFF]++;
        }
        long bytes = d.allocate(in.length);
        MemorySegment.copy(in, 0, d.at(bytes, in.length), ValueLayout.JAVA_BYTE, 0, in.length);
        long bins = d.put(new int[256]);
        d.launch("histogram", 3, 128, bins, bytes, in.length);
        assertArrayEquals(expected, d.ints(bins, 256));
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "fast", "debug"})
    void shouldShuffleAmongPartialMasks(String build) throws Exception {
        Device d = open(build);
        long out = d.allocate(64 * 8);
        d.launch("partialMasks", 1, 64, out);
        int[] got = d.ints(out, 128);
        int[] value = new int[32];
        for (int lane = 0; lane < 32; lane++) {
            value[lane] = lane % 2 == 1 ? (lane ^ 2) * 10 + 8000
                : (lane >= 2 ? lane - 2 : lane) * 100 + 100000;
        }
        for (int t = 0; t < 64; t++) {
            assertEquals(value[t % 32], got[2 * t], "thread " + t);
            assertEquals(value[t % 32 / 8 * 8] + 1, got[2 * t + 1], "thread " + t);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "fast", "debug"})
    void shouldPassBarriersWhileThreadsDivergeAndExit(String build) throws Exception {
        Device d = open(build);
        long out = d.allocate(96 * 4);
        d.launch("divergentBarriers", 1, 128, out, 5);
        int[] turn = new int[96];
        for (int t = 0; t < 96; t++) {
            turn[t] = t;
        }
        for (int r = 0; r < 5; r++) {
            int[] old = turn.clone();
            for (int t = 0; t < 96; t++) {
                turn[t] = t % 3 == 0 ? old[t] + old[(t + 1) % 96] : old[t] ^ old[(t + 1) % 96];
            }
        }
        int odd = 0;
        boolean all = true;
        for (int value : turn) {
            odd += value & 1;
            all &= value >= 0;
        }
        int[] got = d.ints(out, 96);
        for (int t = 0; t < 96; t++) {
            int any = 1;
            assertEquals(turn[t] + odd * 1000000 + (all ? 100000000 : 0) + any * 200000000, got[t], "thread " + t);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "fast", "debug"})
    void shouldMakeProgressInSpinLocks(String build) throws Exception {
        Device d = open(build);
        long counter = d.put(0);
        d.launch("spinLock", 2, 64, counter, d.put(0));
        assertEquals(128, d.ints(counter, 1)[0]);
        long held = d.put(0);
        d.launch("heldLock", 1, 128, held);
        assertEquals(16, d.ints(held, 1)[0]);
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "fast", "debug"})
    void shouldIndexLocalArrays(String build) throws Exception {
        Device d = open(build);
        long out = d.allocate(64 * 4);
        d.launch("localArrays", 1, 64, out, 100);
        int[] got = d.ints(out, 64);
        for (int t = 0; t < 64; t++) {
            int[] stack = new int[32];
            for (int i = 0; i < 32; i++) {
                stack[i] = i * t;
            }
            for (int i = 0; i < 100; i++) {
                int j = (i * 7 + t) % 32;
                stack[j] += stack[(j + 5) % 32] ^ i;
            }
            int sum = 0;
            for (int i = 0; i < 32; i++) {
                sum = sum * 31 + stack[i];
            }
            assertEquals(sum, got[t]);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "fast", "debug"})
    void shouldRecurse(String build) throws Exception {
        Device d = open(build);
        long out = d.allocate(64 * 4);
        d.launch("recursion", 1, 32, out, 10);
        int[] got = d.ints(out, 64);
        int[] fibonacci = {55, 89, 144, 233};
        for (int t = 0; t < 32; t++) {
            assertEquals(fibonacci[t % 4], got[2 * t]);
            assertEquals(2 * (t % 4) + 3, got[2 * t + 1]);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "fast", "debug"})
    void shouldCallThroughPointersAndVirtualTables(String build) throws Exception {
        Device d = open(build);
        for (int select = 0; select < 3; select++) {
            long areas = d.allocate(32 * 4);
            long out = d.allocate(32 * 4);
            d.launch("indirectCalls", 1, 32, areas, out, select);
            int[] got = d.ints(out, 32);
            for (int t = 0; t < 32; t++) {
                assertEquals(t % 2 == 1 ? (float) t * t : 3f * t * t, d.at(areas, 128).getAtIndex(F32, t));
                assertEquals(select == 0 ? 2 * t : select == 1 ? -t : 496, got[t]);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "fast", "debug"})
    void shouldPassStructsByValue(String build) throws Exception {
        Device d = open(build);
        byte[] in = new byte[24];
        ByteBuffer.wrap(in).order(ByteOrder.LITTLE_ENDIAN).putInt(5).putInt(0).putDouble(7.75)
            .put(new byte[] {1, 2, 3, 4, 5, 6});
        long out = d.allocate(32 * 24);
        d.launch("structs", 1, 32, out, in);
        for (int t = 0; t < 32; t++) {
            MemorySegment one = d.at(out + 24L * t, 24);
            assertEquals(7, one.get(ValueLayout.JAVA_INT_UNALIGNED, 0));
            assertEquals(5.0 + 2 * t, one.get(F64, 8));
            assertEquals(6, one.get(ValueLayout.JAVA_BYTE, 16));
            assertEquals(1, one.get(ValueLayout.JAVA_BYTE, 21));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "fast", "debug"})
    void shouldReadConstantMemory(String build) throws Exception {
        Device d = open(build);
        float[] weights = {1, 2, 3, 4, 5, 6, 7, 8, 9};
        MemorySegment.copy(weights, 0, d.at(d.address("weights"), 36), F32, 0, 9);
        float[] in = new float[20 * 10];
        for (int i = 0; i < in.length; i++) {
            in[i] = i % 17;
        }
        long out = d.allocate(in.length * 4L);
        d.launch("convolve", new int[] {3, 2, 1}, new int[] {8, 8, 1}, 0, out, d.put(in), 20, 10);
        int[] added = {1, -2, 300, -400};
        for (int y = 0; y < 10; y++) {
            for (int x = 0; x < 20; x++) {
                float sum = 0;
                for (int k = 0; k < 9; k++) {
                    int xx = Math.clamp(x + k % 3 - 1, 0, 19);
                    int yy = Math.clamp(y + k / 3 - 1, 0, 9);
                    sum += weights[k] * in[yy * 20 + xx];
                }
                assertEquals(sum + added[x + y & 3], d.at(out, in.length * 4L).getAtIndex(F32, y * 20 + x));
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "fast", "debug"})
    void shouldPrintAndAssert(String build) throws Exception {
        Device d = open(build);
        d.launch("hello", 1, 2, 2);
        assertEquals("thread 0 of 2:  0.00|zero  |a|ff|-1234567890123|1.230000e-04|1e+10%\n"
            + "thread 1 of 2:  1.50|one   |b|100|-1234567890123|1.230000e-04|1e+10%\n",
            d.printed.toString(StandardCharsets.UTF_8));
        DeviceFault fault = assertThrows(DeviceFault.class, () -> d.launch("hello", 1, 2, 1));
        assertEquals(DeviceFault.ASSERT, fault.cuResult());
        assertTrue(fault.getMessage().contains("Assertion `threadIdx.x < n` failed"), fault.getMessage());
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "fast", "debug"})
    void shouldScanInDynamicSharedMemory(String build) throws Exception {
        Device d = open(build);
        int[] data = new int[256];
        for (int i = 0; i < 256; i++) {
            data[i] = i % 7;
        }
        long at = d.put(data);
        d.launch("dynamicScan", new int[] {2, 1, 1}, new int[] {128, 1, 1}, 512, at, 128);
        int[] got = d.ints(at, 256);
        for (int block = 0; block < 2; block++) {
            int sum = 0;
            for (int i = 0; i < 128; i++) {
                sum += data[block * 128 + i];
                assertEquals(sum, got[block * 128 + i]);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "fast", "debug"})
    void shouldComputeLibraryFunctionsOfDoubles(String build) throws Exception {
        Device d = open(build);
        double[] in = {0.5, -1.25, 3, 1e-5, 20, -7.5, 0, 1.75};
        long from = d.allocate(64);
        MemorySegment.copy(in, 0, d.at(from, 64), F64, 0, 8);
        long out = d.allocate(512);
        d.launch("doubles", 1, 8, out, from, 8);
        for (int i = 0; i < 8; i++) {
            double x = in[i];
            double[] expected = {Math.exp(x), Math.log(Math.abs(x) + 1e-3), Math.sin(x), Math.pow(Math.abs(x), 1.7),
                Math.sqrt(Math.abs(x)), x / (1 + x * x), Math.floor(x) + Math.rint(x) + (double) (long) x};
            for (int k = 0; k < expected.length; k++) {
                double got = d.at(out, 512).getAtIndex(F64, 8 * i + k);
                assertEquals(expected[k], got, Math.abs(expected[k]) * 1e-14 + 1e-300, "x=" + x + " k=" + k);
            }
            double rest = d.at(out, 512).getAtIndex(F64, 8 * i + 7);
            assertEquals(erf(x) + Math.tanh(x) + Math.cbrt(x) + Math.atan2(x, 2), rest, 1e-13, "x=" + x);
        }
    }

    /** Computes by the series: slow, but exact enough for the arguments above. */
    private static double erf(double x) {
        if (Math.abs(x) > 5) {
            return Math.signum(x);
        }
        double sum = 0;
        double term = x;
        for (int n = 0; n < 200; n++) {
            sum += term / (2 * n + 1);
            term *= -x * x / (n + 1);
        }
        return 2 / Math.sqrt(Math.PI) * sum;
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "fast", "debug"})
    void shouldComputeLibraryFunctionsOfFloats(String build) throws Exception {
        Device d = open(build);
        float[] in = {0.5f, -1.25f, 3, 1e-5f, 10, -7.5f, 0, 1.75f};
        long out = d.allocate(256);
        d.launch("floats", 1, 8, out, d.put(in), 8);
        for (int i = 0; i < 8; i++) {
            double x = in[i];
            double y = Math.abs(x);
            double[] expected = {Math.exp(x), Math.log((float) y + 1e-3f), Math.sin(in[i] * 1000f), Math.pow(y, 1.7f),
                Math.sqrt(y) + 1 / Math.sqrt(y + 1), x / (1 + x * x),
                Math.floor(x) + Math.rint(x) + (double) (long) x + x % 0.7f,
                erf(x) + Math.tanh(x) + Math.cbrt(x) + Math.atan2(x, 2) + Math.exp(x) + Math.sin(x)};
            for (int k = 0; k < 8; k++) {
                double got = d.at(out, 256).getAtIndex(F32, 8 * i + k);
                assertEquals(expected[k], got, Math.abs(expected[k]) * 3e-6 + 2e-6, "x=" + x + " k=" + k);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "fast", "debug"})
    void shouldComputeInHalfPrecision(String build) throws Exception {
        Device d = open(build);
        float[] in = {0.5f, -1.25f, 3, 0.1f, 10, -7.5f, 0, 200};
        long out = d.allocate(128);
        d.launch("halves", 1, 8, out, d.put(in));
        for (int i = 0; i < 8; i++) {
            float h = Float.float16ToFloat(Float.floatToFloat16(in[i]));
            MemorySegment got = d.at(out, 128);
            assertEquals(h * h + h, got.getAtIndex(F32, 4L * i), Math.abs(h * h + h) * 2e-3);
            assertEquals(Float.float16ToFloat(Float.floatToFloat16(h * h + h)), got.getAtIndex(F32, 4 * i + 1));
            assertEquals(Float.float16ToFloat(Float.floatToFloat16(h * h + h)), got.getAtIndex(F32, 4 * i + 2));
            assertEquals(in[i] * in[i] + in[i], got.getAtIndex(F32, 4 * i + 3),
                Math.abs(in[i] * in[i]) * 0.03 + 0.02);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "fast", "debug"})
    void shouldComputeOnIntegers(String build) throws Exception {
        Device d = open(build);
        int[] in = new Random(11).ints(64).toArray();
        long out = d.allocate(32 * 96);
        d.launch("integers", 1, 32, out, d.put(in));
        for (int i = 0; i < 32; i++) {
            int a = in[2 * i];
            int b = in[2 * i + 1];
            long w = (long) a << 32 | b & 0xFFFFFFFFL;
            long ua = a & 0xFFFFFFFFL;
            long ub = b & 0xFFFFFFFFL;
            int s = a & 31;
            int c = Math.min(b & 63, 32);
            long both = ub << 32 | ua;
            int left = (int) (both << s >>> 32);
            int right = c == 32 ? b : (int) (both >>> c);
            long[] expected = {
                Integer.bitCount(a) + 100 * Integer.numberOfLeadingZeros(b)
                    + 10000 * (a == 0 ? 0 : Integer.numberOfTrailingZeros(a) + 1),
                (Integer.reverse(a) ^ permute(both, 0x3715)) & 0xFFFFFFFFL,
                (ua * ub >>> 32) + ((long) a * b >> 32),
                Long.divideUnsigned(w, ub | 1) + Long.remainderUnsigned(w, ua | 1),
                Math.unsignedMultiplyHigh(w, w) ^ w * w,
                (left ^ right) & 0xFFFFFFFFL,
                (long) a / (b | 1) + (long) a % (b | 1),
                dot(a, b, 7),
                (int) (5 + Math.abs((long) a - b)) + (int) (9 + Math.abs(ua - ub)) & 0xFFFFFFFFL,
                Math.unsignedMultiplyHigh(w, w) + (Long.compareUnsigned(w * w + w, w) < 0 ? 1 : 0) + (w * w + w),
                (byte) a * (short) b + (a >>> 3 & 0xFF) + (b >>> 5 & 0xFFFF),
                Float.intBitsToFloat(a & 0x3fffffff) > 1f ? ua % 1000 : ub / 10};
            for (int k = 0; k < 12; k++) {
                assertEquals(expected[k], d.at(out, 32 * 96).getAtIndex(I64, 12 * i + k), "i=" + i + " k=" + k);
            }
        }
    }

    private static int permute(long bytes, int selectors) {
        int result = 0;
        for (int i = 0; i < 4; i++) {
            result |= (int) (bytes >>> (selectors >> 4 * i & 7) * 8 & 0xFF) << 8 * i;
        }
        return result;
    }

    private static int dot(int a, int b, int c) {
        int sum = c;
        for (int i = 0; i < 4; i++) {
            sum += (byte) (a >> 8 * i) * (byte) (b >> 8 * i);
        }
        return sum;
    }
}
