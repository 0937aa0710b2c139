package io.hawser.gpu.software.math;

import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_INTERNAL_ERROR;
import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_LAUNCH_FAILURE;
import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_LENGTH_NOT_MULTIPLE;
import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_OUT_OF_RANGE;
import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_SUCCESS;
import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_TYPE_ERROR;

import io.hawser.cuda.backend.CurandBackend;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.curand.HwsRandFunction;
import io.hawser.cuda.generated.curand.HwsRandSetting;
import io.hawser.cuda.generated.curand.HwsRandWork;
import io.hawser.cuda.generated.curand.curandOrdering_t;
import io.hawser.cuda.generated.curand.curandRngType_t;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;

/**
 * cuRAND on the software GPU: Philox, whose sequence is documented. The other generators and Poisson's distribution
 * return CURAND_STATUS_INTERNAL_ERROR, because cuRAND has no status for "not supported"; the log names them. Session
 * thread; the work runs on the device's threads.
 */
final class SoftwareCurand implements CurandBackend {
    private static final System.Logger LOG = System.getLogger(SoftwareCurand.class.getName());
    private static final int VERSION = 10_400; // of the interface, as CUDA 13.0 has it
    private static final Set<Integer> OTHER_TYPES = Set.of(curandRngType_t.CURAND_RNG_TEST,
        curandRngType_t.CURAND_RNG_PSEUDO_DEFAULT, curandRngType_t.CURAND_RNG_PSEUDO_XORWOW,
        curandRngType_t.CURAND_RNG_PSEUDO_MRG32K3A, curandRngType_t.CURAND_RNG_PSEUDO_MTGP32,
        curandRngType_t.CURAND_RNG_PSEUDO_MT19937, curandRngType_t.CURAND_RNG_QUASI_DEFAULT,
        curandRngType_t.CURAND_RNG_QUASI_SOBOL32, curandRngType_t.CURAND_RNG_QUASI_SCRAMBLED_SOBOL32,
        curandRngType_t.CURAND_RNG_QUASI_SOBOL64, curandRngType_t.CURAND_RNG_QUASI_SCRAMBLED_SOBOL64);

    private final GpuBackend gpu;
    private final Map<Long, Generator> generators = new HashMap<>();
    private long lastHandle;

    /** The settings of a generator, and its place in the sequence. */
    private static final class Generator {
        private final boolean isHost;
        private long stream;
        private long seed;
        private long offset;
        private RandomWork work = new RandomWork(0, 0);

        Generator(boolean isHost) {
            this.isHost = isHost;
        }

        /** A setting starts the sequence again. Issued work keeps the former one. */
        void restart() {
            work = new RandomWork(seed, offset);
        }
    }

    SoftwareCurand(GpuBackend gpu) {
        this.gpu = gpu;
    }

    @Override
    public int version(MemorySegment value) {
        value.set(ValueLayout.JAVA_INT, 0, VERSION);
        return CURAND_STATUS_SUCCESS;
    }

    private static int refuse(String what) {
        LOG.log(Level.WARNING, "the software GPU''s cuRAND does not support {0}", what);
        return CURAND_STATUS_INTERNAL_ERROR;
    }

    @Override
    public int create(int type, boolean isHost, MemorySegment made) {
        if (type != curandRngType_t.CURAND_RNG_PSEUDO_PHILOX4_32_10) {
            return OTHER_TYPES.contains(type) ? refuse("generators of curandRngType_t " + type)
                : CURAND_STATUS_TYPE_ERROR;
        }
        generators.put(++lastHandle, new Generator(isHost));
        made.set(ValueLayout.JAVA_LONG, 0, lastHandle);
        return CURAND_STATUS_SUCCESS;
    }

    @Override
    public int destroy(long generator) {
        generators.remove(generator);
        return CURAND_STATUS_SUCCESS;
    }

    @Override
    public long generatorBytes(int type, boolean isHost) {
        return 0;
    }

    @Override
    public int setStream(long generator, long stream) {
        generators.get(generator).stream = stream;
        return CURAND_STATUS_SUCCESS;
    }

    @Override
    public int set(long generator, int setting, long value) {
        Generator state = generators.get(generator);
        switch (setting) {
            case HwsRandSetting.HWS_RAND_SEED -> state.seed = value;
            case HwsRandSetting.HWS_RAND_OFFSET -> state.offset = value;
            case HwsRandSetting.HWS_RAND_ORDERING -> {
                if (value == curandOrdering_t.CURAND_ORDERING_PSEUDO_SEEDED) {
                    return refuse("CURAND_ORDERING_PSEUDO_SEEDED");
                }
                if (value < curandOrdering_t.CURAND_ORDERING_PSEUDO_BEST
                    || value > curandOrdering_t.CURAND_ORDERING_PSEUDO_DYNAMIC) {
                    return CURAND_STATUS_OUT_OF_RANGE;
                }
            }
            default -> {
                return CURAND_STATUS_TYPE_ERROR; // dimensions are for quasirandom numbers
            }
        }
        state.restart();
        return CURAND_STATUS_SUCCESS;
    }

    @Override
    public int generate(long generator, MemorySegment work, long output) {
        int function = work.get(ValueLayout.JAVA_INT_UNALIGNED, HwsRandWork.FUNCTION_OFFSET);
        long count = work.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsRandWork.COUNT_OFFSET);
        if (function == HwsRandFunction.HWS_RAND_SEEDS) {
            return CURAND_STATUS_SUCCESS; // a position needs no memory
        }
        if (function == HwsRandFunction.HWS_RAND_BITS64) {
            return CURAND_STATUS_TYPE_ERROR;
        }
        if (function == HwsRandFunction.HWS_RAND_POISSON || function == HwsRandFunction.HWS_RAND_POISSON_METHOD) {
            return refuse("Poisson's distribution");
        }
        if (RandomWork.isNormal(function) && count % 2 != 0) {
            return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
        }
        Generator state = generators.get(generator);
        RandomWork numbers = state.work;
        double mean = work.get(ValueLayout.JAVA_DOUBLE_UNALIGNED, HwsRandWork.MEAN_OFFSET);
        double stddev = work.get(ValueLayout.JAVA_DOUBLE_UNALIGNED, HwsRandWork.STDDEV_OFFSET);
        if (state.isHost) {
            numbers.fill(function, output, count, mean, stddev);
            return CURAND_STATUS_SUCCESS;
        }
        return gpu.hostFunction(state.stream, () -> numbers.fill(function, output, count, mean, stddev)) == 0
            ? CURAND_STATUS_SUCCESS : CURAND_STATUS_LAUNCH_FAILURE;
    }

    @Override
    public int table(int table, int set, MemorySegment address) {
        return refuse("tables of direction vectors");
    }

    @Override
    public int makeDistribution(double lambda, MemorySegment address) {
        return refuse("Poisson's distribution");
    }

    @Override
    public int dropDistribution(long address) {
        return CURAND_STATUS_INTERNAL_ERROR; // none was made
    }

    @Override
    public long distributionBytes() {
        return 0;
    }
}
