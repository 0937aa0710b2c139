package io.hawser.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.backend.FftPlan;
import io.hawser.cuda.generated.cublas.cudaDataType_t;
import io.hawser.cuda.generated.cufft.HwsFftFunction;
import io.hawser.cuda.generated.cufft.HwsFftPlan;
import io.hawser.cuda.generated.cufft.cufftResult;
import io.hawser.cuda.generated.cufft.cufftType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

class FftPlanTest {
    private static final int[] TYPES = {cufftType.CUFFT_C2C, cufftType.CUFFT_R2C, cufftType.CUFFT_C2R,
        cufftType.CUFFT_Z2Z, cufftType.CUFFT_D2Z, cufftType.CUFFT_Z2D};

    private final MemorySegment content = Arena.ofAuto().allocate(HwsFftPlan.BYTES, Long.BYTES);

    private FftPlanTest set(int offset, int value) {
        content.set(ValueLayout.JAVA_INT, offset, value);
        return this;
    }

    private FftPlanTest longs(int offset, long... values) {
        for (int i = 0; i < values.length; i++) {
            content.set(ValueLayout.JAVA_LONG, offset + (long) i * Long.BYTES, values[i]);
        }
        return this;
    }

    private FftPlanTest many(int type, long... n) {
        content.fill((byte) 0);
        return set(HwsFftPlan.FUNCTION_OFFSET, HwsFftFunction.HWS_FFT_MANY64).set(HwsFftPlan.RANK_OFFSET, n.length)
            .set(HwsFftPlan.TYPE_OFFSET, type).longs(HwsFftPlan.N_OFFSET, n).longs(HwsFftPlan.BATCH_OFFSET, 1L);
    }

    private int status() {
        return FftPlan.of(content).status();
    }

    /** The highest byte that a loop over every element of every batch finds. */
    private static long naiveBytes(long[] sizes, long[] embed, long stride, long dist, long batch, int elementBytes) {
        long highest = 0;
        int rank = sizes.length;
        long[] at = new long[rank];
        for (long b = 0; b < batch; b++) {
            Arrays.fill(at, 0);
            boolean more = true;
            while (more) {
                long index = 0;
                for (int i = 0; i < rank; i++) {
                    index = index * (i == 0 ? 1 : embed[i]) + at[i];
                }
                highest = Math.max(highest, (b * dist + index * stride + 1) * elementBytes);
                int i = rank - 1;
                while (i >= 0 && ++at[i] == sizes[i]) {
                    at[i--] = 0;
                }
                more = i >= 0;
            }
        }
        return highest;
    }

    private static long[] half(long[] n) {
        long[] half = n.clone();
        half[n.length - 1] = n[n.length - 1] / 2 + 1;
        return half;
    }

    private static long product(long[] numbers) {
        long product = 1;
        for (long number : numbers) {
            product *= number;
        }
        return product;
    }

    @Test
    void shouldFindTheHighestIndexOfRandomPlans() {
        Random random = new Random(20260704);
        for (int round = 0; round < 20_000; round++) {
            int rank = 1 + random.nextInt(3);
            int type = TYPES[random.nextInt(TYPES.length)];
            boolean isAdvanced = random.nextBoolean();
            long[] n = random.longs(rank, 1, 7).toArray();
            long[] inembed = random.longs(rank, 1, 9).toArray();
            long[] onembed = random.longs(rank, 1, 9).toArray();
            long batch = 1L + random.nextLong(4);
            long[] layout = random.longs(4, 0, 40).toArray();
            layout[0] = layout[0] % 5 + 1;
            layout[2] = layout[2] % 5 + 1;
            many(type, n).longs(HwsFftPlan.BATCH_OFFSET, batch).longs(HwsFftPlan.INEMBED_OFFSET, inembed)
                .longs(HwsFftPlan.ONEMBED_OFFSET, onembed).longs(HwsFftPlan.ISTRIDE_OFFSET, layout)
                .set(HwsFftPlan.HAS_INEMBED_OFFSET, isAdvanced ? 1 : 0)
                .set(HwsFftPlan.HAS_ONEMBED_OFFSET, isAdvanced || random.nextBoolean() ? 1 : 0);
            FftPlan plan = FftPlan.of(content);
            assertEquals(cufftResult.CUFFT_SUCCESS, plan.status());
            boolean isDouble = type >= cufftType.CUFFT_Z2Z;
            boolean isRealIn = type == cufftType.CUFFT_R2C || type == cufftType.CUFFT_D2Z;
            boolean isRealOut = type == cufftType.CUFFT_C2R || type == cufftType.CUFFT_Z2D;
            int complexBytes = isDouble ? 16 : 8;
            for (boolean isInput : new boolean[] {true, false}) {
                boolean isReal = isInput ? isRealIn : isRealOut;
                long[] sizes = !isReal && (isRealIn || isRealOut) ? half(n) : n;
                int bytes = isReal ? complexBytes / 2 : complexBytes;
                for (boolean isInPlace : new boolean[] {true, false}) {
                    long[] packed = sizes.clone();
                    if (isInPlace && isReal) {
                        packed[rank - 1] = 2L * (n[rank - 1] / 2 + 1);
                    }
                    long expected = isAdvanced
                        ? naiveBytes(sizes, isInput ? inembed : onembed, layout[isInput ? 0 : 2],
                            layout[isInput ? 1 : 3], batch, bytes)
                        : naiveBytes(sizes, packed, 1, product(packed), batch, bytes);
                    FftPlan.Side side = isInput ? plan.input(isInPlace) : plan.output(isInPlace);
                    assertEquals(expected, side.bytes(), () -> "type=" + type + " rank=" + rank);
                    assertEquals(!isReal, side.isComplex());
                }
            }
        }
    }

    @Test
    void shouldRejectSizesThatNoTransformHas() {
        assertEquals(cufftResult.CUFFT_INVALID_SIZE, many(cufftType.CUFFT_C2C, 0).status());
        assertEquals(cufftResult.CUFFT_INVALID_SIZE, many(cufftType.CUFFT_C2C, 8, -1).status());
        assertEquals(cufftResult.CUFFT_INVALID_SIZE,
            many(cufftType.CUFFT_C2C, 8).longs(HwsFftPlan.BATCH_OFFSET, 0L).status());
        assertEquals(cufftResult.CUFFT_INVALID_VALUE, many(cufftType.CUFFT_C2C).status());
        assertEquals(cufftResult.CUFFT_INVALID_VALUE,
            many(cufftType.CUFFT_C2C, 8).set(HwsFftPlan.RANK_OFFSET, 4).status());
        assertEquals(cufftResult.CUFFT_INVALID_VALUE,
            many(cufftType.CUFFT_C2C, 8).set(HwsFftPlan.FUNCTION_OFFSET, 7).status());
        assertEquals(cufftResult.CUFFT_INVALID_TYPE, many(0x17, 8).status());
    }

    @Test
    void shouldRejectSumsThatOverflow() {
        long huge = 1L << 40;
        assertEquals(cufftResult.CUFFT_INVALID_SIZE, many(cufftType.CUFFT_C2C, huge, huge).status());
        assertEquals(cufftResult.CUFFT_INVALID_SIZE, many(cufftType.CUFFT_Z2Z, 1L << 60).status());
        assertEquals(cufftResult.CUFFT_INVALID_SIZE, many(cufftType.CUFFT_R2C, Long.MAX_VALUE).status());
        assertEquals(cufftResult.CUFFT_INVALID_SIZE,
            many(cufftType.CUFFT_C2C, 1 << 20).longs(HwsFftPlan.BATCH_OFFSET, 1L << 50).status());
        assertEquals(cufftResult.CUFFT_INVALID_SIZE, many(cufftType.CUFFT_C2C, 8).set(HwsFftPlan.HAS_INEMBED_OFFSET, 1)
            .set(HwsFftPlan.HAS_ONEMBED_OFFSET, 1)
            .longs(HwsFftPlan.INEMBED_OFFSET, 1).longs(HwsFftPlan.ONEMBED_OFFSET, 1)
            .longs(HwsFftPlan.ISTRIDE_OFFSET, Long.MAX_VALUE / 2, 0, 1, 0).status());
        // The functions with 32-bit arguments cannot have been called with these.
        assertEquals(cufftResult.CUFFT_INVALID_SIZE, many(cufftType.CUFFT_C2C, 1L << 32)
            .set(HwsFftPlan.FUNCTION_OFFSET, HwsFftFunction.HWS_FFT_MANY).status());
    }

    @Test
    void shouldRejectStridesBelowOne() {
        for (int offset : new int[] {HwsFftPlan.ISTRIDE_OFFSET, HwsFftPlan.OSTRIDE_OFFSET,
            HwsFftPlan.INEMBED_OFFSET + Long.BYTES, HwsFftPlan.ONEMBED_OFFSET + Long.BYTES, HwsFftPlan.IDIST_OFFSET,
            HwsFftPlan.ODIST_OFFSET}) {
            many(cufftType.CUFFT_C2C, 8, 8).set(HwsFftPlan.HAS_INEMBED_OFFSET, 1)
                .set(HwsFftPlan.HAS_ONEMBED_OFFSET, 1).longs(HwsFftPlan.INEMBED_OFFSET, 8, 8)
                .longs(HwsFftPlan.ONEMBED_OFFSET, 8, 8).longs(HwsFftPlan.ISTRIDE_OFFSET, 1, 64, 1, 64)
                .longs(HwsFftPlan.BATCH_OFFSET, 2L);
            assertEquals(cufftResult.CUFFT_SUCCESS, status());
            assertEquals(cufftResult.CUFFT_INVALID_VALUE, longs(offset, -1L).status());
        }
    }

    @Test
    void shouldKnowTheTypesOfCufftXt() {
        many(0, 64).set(HwsFftPlan.FUNCTION_OFFSET, HwsFftFunction.HWS_FFT_XT)
            .set(HwsFftPlan.INPUT_TYPE_OFFSET, cudaDataType_t.CUDA_R_16BF)
            .set(HwsFftPlan.OUTPUT_TYPE_OFFSET, cudaDataType_t.CUDA_C_16BF)
            .set(HwsFftPlan.EXECUTION_TYPE_OFFSET, cudaDataType_t.CUDA_C_16BF);
        FftPlan plan = FftPlan.of(content);
        assertEquals(cufftResult.CUFFT_SUCCESS, plan.status());
        assertEquals(128, plan.input(false).bytes());
        assertEquals(132, plan.output(false).bytes());
        assertTrue(plan.serves(0) && !plan.serves(cufftType.CUFFT_R2C));
        set(HwsFftPlan.INPUT_TYPE_OFFSET, cudaDataType_t.CUDA_R_32F).set(HwsFftPlan.OUTPUT_TYPE_OFFSET,
            cudaDataType_t.CUDA_C_32F);
        assertTrue(FftPlan.of(content).serves(cufftType.CUFFT_R2C));
        assertTrue(!FftPlan.of(content).serves(cufftType.CUFFT_C2R));
        assertEquals(cufftResult.CUFFT_INVALID_TYPE,
            set(HwsFftPlan.OUTPUT_TYPE_OFFSET, cudaDataType_t.CUDA_R_32I).status());
        assertEquals(cufftResult.CUFFT_INVALID_TYPE,
            set(HwsFftPlan.OUTPUT_TYPE_OFFSET, cudaDataType_t.CUDA_R_32F).status());
    }
}
