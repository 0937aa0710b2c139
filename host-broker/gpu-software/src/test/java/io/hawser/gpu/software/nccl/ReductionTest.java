package io.hawser.gpu.software.nccl;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.cuda.backend.NcclOperation;
import io.hawser.cuda.generated.nccl.ncclDataType_t;
import io.hawser.cuda.generated.nccl.ncclRedOp_t;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ReductionTest {
    private static MemorySegment bytes(int... values) {
        byte[] bytes = new byte[values.length];
        IntStream.range(0, values.length).forEach(i -> bytes[i] = (byte) values[i]);
        return MemorySegment.ofArray(bytes);
    }

    private static MemorySegment reduce(int datatype, int reduction, MemorySegment... ranks) {
        MemorySegment out = MemorySegment.ofArray(new byte[(int) ranks[0].byteSize()]);
        new Reduction(datatype, reduction).reduce(ranks, out);
        return out;
    }

    @ParameterizedTest
    @CsvSource({"0,-56,-100,100", "0,200,100,44", "1,200,100,44", "1,200,50,250"})
    void shouldWrapSumsAsTheTypeDoes(int datatype, int a, int b, int expected) {
        assertEquals((byte) expected, reduce(datatype, ncclRedOp_t.ncclSum, bytes(a), bytes(b))
            .get(ValueLayout.JAVA_BYTE, 0));
    }

    @Test
    void shouldCompareUnsignedNumbersAsSuch() {
        assertArrayEquals(new byte[] {(byte) 200, (byte) 255}, reduce(ncclDataType_t.ncclUint8, ncclRedOp_t.ncclMax,
            bytes(200, 1), bytes(100, 255)).toArray(ValueLayout.JAVA_BYTE));
        assertArrayEquals(new byte[] {100, (byte) 255}, reduce(ncclDataType_t.ncclInt8, ncclRedOp_t.ncclMax,
            bytes(200, 254), bytes(100, 255)).toArray(ValueLayout.JAVA_BYTE));
        MemorySegment large = MemorySegment.ofArray(new long[] {-1});
        MemorySegment small = MemorySegment.ofArray(new long[] {1});
        assertEquals(1, reduce(ncclDataType_t.ncclUint64, ncclRedOp_t.ncclMin, large, small)
            .get(ValueLayout.JAVA_LONG_UNALIGNED, 0));
        assertEquals(Long.MAX_VALUE, reduce(ncclDataType_t.ncclUint64, ncclRedOp_t.ncclAvg, large,
            MemorySegment.ofArray(new long[1])).get(ValueLayout.JAVA_LONG_UNALIGNED, 0));
    }

    @Test
    void shouldRoundShortNumbersToTheNearest() {
        short one = (short) 0x3f80; // bfloat16: 1, whose next number is 1 + 2^-7
        short tiny = (short) 0x3b80; // 2^-8, half of the distance: the even number is 1
        assertEquals(one, reduce(ncclDataType_t.ncclBfloat16, ncclRedOp_t.ncclSum,
            MemorySegment.ofArray(new short[] {one}), MemorySegment.ofArray(new short[] {tiny}))
            .get(ValueLayout.JAVA_SHORT_UNALIGNED, 0));
        short half = Float.floatToFloat16(1.5f);
        assertEquals(Float.floatToFloat16(3f), reduce(ncclDataType_t.ncclFloat16, ncclRedOp_t.ncclSum,
            MemorySegment.ofArray(new short[] {half}), MemorySegment.ofArray(new short[] {half}))
            .get(ValueLayout.JAVA_SHORT_UNALIGNED, 0));
    }

    @Test
    void shouldKnowTheSizeOfEveryType() {
        assertArrayEquals(new int[] {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1, 0}, IntStream.rangeClosed(0, 12)
            .map(NcclOperation::bytesOf).toArray());
    }
}
