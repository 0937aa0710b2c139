package io.hawser.gpu.nvidia;

import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_INTERNAL_ERROR;
import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_OUT_OF_RANGE;
import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_SUCCESS;

import io.hawser.cuda.backend.CurandBackend;
import io.hawser.cuda.backend.NativeLibrary;
import io.hawser.cuda.generated.curand.CurandNative;
import io.hawser.cuda.generated.curand.HwsRandFunction;
import io.hawser.cuda.generated.curand.HwsRandSetting;
import io.hawser.cuda.generated.curand.HwsRandTable;
import io.hawser.cuda.generated.curand.HwsRandWork;
import io.hawser.cuda.generated.curand.curandRngType_t;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** NVIDIA's cuRAND. Session thread. */
final class NvidiaCurand implements CurandBackend {
    // Assumptions, as the library documents no numbers: states of all threads, tables of all dimensions.
    private static final long STATE_BYTES = 8L << 20;
    private static final long MERSENNE_BYTES = 32L << 20;
    private static final long SOBOL_BYTES = 16L << 20;
    private static final long DISTRIBUTION_BYTES = 64 << 10;

    private final CurandNative library;

    NvidiaCurand(NativeLibrary library) {
        this.library = new CurandNative(library);
    }

    @Override
    public int version(MemorySegment value) {
        return library.curandGetVersion(value);
    }

    @Override
    public int create(int type, boolean isHost, MemorySegment made) {
        return isHost ? library.curandCreateGeneratorHost(made, type) : library.curandCreateGenerator(made, type);
    }

    @Override
    public int destroy(long generator) {
        return library.curandDestroyGenerator(generator);
    }

    @Override
    public long generatorBytes(int type, boolean isHost) {
        if (isHost) {
            return 0;
        }
        return type >= curandRngType_t.CURAND_RNG_QUASI_DEFAULT ? SOBOL_BYTES
            : type == curandRngType_t.CURAND_RNG_PSEUDO_MT19937 ? MERSENNE_BYTES : STATE_BYTES;
    }

    @Override
    public int setStream(long generator, long stream) {
        return library.curandSetStream(generator, stream);
    }

    @Override
    public int set(long generator, int setting, long value) {
        return switch (setting) {
            case HwsRandSetting.HWS_RAND_ORDERING -> library.curandSetGeneratorOrdering(generator, (int) value);
            case HwsRandSetting.HWS_RAND_DIMENSIONS ->
                library.curandSetQuasiRandomGeneratorDimensions(generator, (int) value);
            case HwsRandSetting.HWS_RAND_SEED -> library.curandSetPseudoRandomGeneratorSeed(generator, value);
            case HwsRandSetting.HWS_RAND_OFFSET -> library.curandSetGeneratorOffset(generator, value);
            default -> CURAND_STATUS_OUT_OF_RANGE;
        };
    }

    private static double real(MemorySegment work, int offset) {
        return work.get(ValueLayout.JAVA_DOUBLE_UNALIGNED, offset);
    }

    @Override
    public int generate(long generator, MemorySegment work, long output) {
        MemorySegment out = MemorySegment.ofAddress(output);
        long count = work.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsRandWork.COUNT_OFFSET);
        double mean = real(work, HwsRandWork.MEAN_OFFSET);
        double stddev = real(work, HwsRandWork.STDDEV_OFFSET);
        double lambda = real(work, HwsRandWork.LAMBDA_OFFSET);
        return switch (work.get(ValueLayout.JAVA_INT_UNALIGNED, HwsRandWork.FUNCTION_OFFSET)) {
            case HwsRandFunction.HWS_RAND_SEEDS -> library.curandGenerateSeeds(generator);
            case HwsRandFunction.HWS_RAND_BITS -> library.curandGenerate(generator, out, count);
            case HwsRandFunction.HWS_RAND_BITS64 -> library.curandGenerateLongLong(generator, out, count);
            case HwsRandFunction.HWS_RAND_UNIFORM -> library.curandGenerateUniform(generator, out, count);
            case HwsRandFunction.HWS_RAND_UNIFORM_DOUBLE -> library.curandGenerateUniformDouble(generator, out, count);
            case HwsRandFunction.HWS_RAND_NORMAL ->
                library.curandGenerateNormal(generator, out, count, (float) mean, (float) stddev);
            case HwsRandFunction.HWS_RAND_NORMAL_DOUBLE ->
                library.curandGenerateNormalDouble(generator, out, count, mean, stddev);
            case HwsRandFunction.HWS_RAND_LOG_NORMAL ->
                library.curandGenerateLogNormal(generator, out, count, (float) mean, (float) stddev);
            case HwsRandFunction.HWS_RAND_LOG_NORMAL_DOUBLE ->
                library.curandGenerateLogNormalDouble(generator, out, count, mean, stddev);
            case HwsRandFunction.HWS_RAND_POISSON -> library.curandGeneratePoisson(generator, out, count, lambda);
            case HwsRandFunction.HWS_RAND_POISSON_METHOD -> library.curandGeneratePoissonMethod(generator, out, count,
                lambda, work.get(ValueLayout.JAVA_INT_UNALIGNED, HwsRandWork.METHOD_OFFSET));
            default -> CURAND_STATUS_OUT_OF_RANGE;
        };
    }

    @Override
    public int table(int table, int set, MemorySegment address) {
        int status = switch (table) {
            case HwsRandTable.HWS_RAND_DIRECTIONS32 -> library.curandGetDirectionVectors32(address, set);
            case HwsRandTable.HWS_RAND_DIRECTIONS64 -> library.curandGetDirectionVectors64(address, set);
            case HwsRandTable.HWS_RAND_CONSTANTS32 -> library.curandGetScrambleConstants32(address);
            case HwsRandTable.HWS_RAND_CONSTANTS64 -> library.curandGetScrambleConstants64(address);
            default -> CURAND_STATUS_OUT_OF_RANGE;
        };
        return status == CURAND_STATUS_SUCCESS && address.get(ValueLayout.JAVA_LONG, 0) == 0
            ? CURAND_STATUS_INTERNAL_ERROR : status;
    }

    @Override
    public int makeDistribution(double lambda, MemorySegment address) {
        return library.curandCreatePoissonDistribution(lambda, address);
    }

    @Override
    public int dropDistribution(long address) {
        return library.curandDestroyDistribution(address);
    }

    @Override
    public long distributionBytes() {
        return DISTRIBUTION_BYTES;
    }
}
