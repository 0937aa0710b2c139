package io.hawser.cuda.backend;

import io.hawser.cuda.generated.curand.HwsRandWork;
import java.lang.foreign.MemorySegment;

/**
 * cuRAND of a GPU. Results are of curandStatus_t; no method throws for any input of a guest. The thread and the current
 * context are those of {@link GpuBackend#driver}.
 */
public interface CurandBackend {
    /** As curandGetVersion; {@code value} receives an int. */
    int version(MemorySegment value);

    /**
     * As curandCreateGenerator or curandCreateGeneratorHost.
     *
     * @param type any number.
     * @param made receives the handle (8 bytes) on success.
     */
    int create(int type, boolean isHost, MemorySegment made);

    /** Destroys a generator of {@link #create}. */
    int destroy(long generator);

    /** Device memory that the state of a generator takes at most; 0 for one on the host. */
    long generatorBytes(int type, boolean isHost);

    /** Sets the stream of further numbers. */
    int setStream(long generator, long stream);

    /**
     * Changes a setting.
     *
     * @param setting an HwsRandSetting, below HWS_RAND_SETTINGS.
     * @param value any number.
     */
    int set(long generator, int setting, long value);

    /**
     * Generates numbers.
     *
     * @param work an {@link HwsRandWork}, whose function is known; of its settings nothing is used.
     * @param output address of the numbers, which is checked: device memory, or the worker's own for a generator on the
     *     host.
     */
    int generate(long generator, MemorySegment work, long output);

    /**
     * Finds a table for kernels. It stays valid as long as the process.
     *
     * @param table an HwsRandTable, below HWS_RAND_TABLES.
     * @param set any number.
     * @param address receives the address in host memory (8 bytes) on success.
     */
    int table(int table, int set, MemorySegment address);

    /**
     * As curandCreatePoissonDistribution.
     *
     * @param address receives the address in device memory (8 bytes) on success.
     */
    int makeDistribution(double lambda, MemorySegment address);

    /** Ends a distribution of {@link #makeDistribution}. */
    int dropDistribution(long address);

    /** Device memory that a distribution takes. */
    long distributionBytes();
}
