package io.hawser.cuda.backend;

import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_INVALID_SIZE;
import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_INVALID_TYPE;
import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_INVALID_VALUE;
import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_SUCCESS;

import io.hawser.cuda.generated.cublas.cudaDataType_t;
import io.hawser.cuda.generated.cufft.HwsFftFunction;
import io.hawser.cuda.generated.cufft.HwsFftPlan;
import io.hawser.cuda.generated.cufft.cufftType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The arguments of a plan of cuFFT, and which elements an execution accesses. A guest chooses the arguments: those that
 * no plan has give a {@link #status}. Immutable.
 */
public final class FftPlan {
    /** Dimensions of a transform at most (cuFFT's MAX_SHIM_RANK). */
    public static final int MAX_RANK = 3;

    private final int function;
    private final int type;
    private final int inputType;
    private final int outputType;
    private final int executionType;
    private final long[] n;
    private final long[] inembed;
    private final long[] onembed;
    private final long istride;
    private final long idist;
    private final long ostride;
    private final long odist;
    private final long batch;
    private final int status;
    private Side input;
    private Side output;
    private Side paddedInput;
    private Side paddedOutput;

    /**
     * The elements of input or output. An element of batch b has the index b * dist plus the sum of its coordinates,
     * each times its step.
     *
     * @param sizes elements in each dimension, which differ from the transform's in the last one of half a spectrum.
     * @param bytes from the address of the first element to the end of the last one, of all batches.
     */
    public record Side(long[] sizes, long[] steps, long dist, int elementBytes, boolean isComplex, long bytes) {
    }

    private FftPlan(MemorySegment content) {
        function = integer(content, HwsFftPlan.FUNCTION_OFFSET);
        type = integer(content, HwsFftPlan.TYPE_OFFSET);
        int rank = integer(content, HwsFftPlan.RANK_OFFSET);
        boolean isKnown = rank >= 1 && rank <= MAX_RANK;
        n = array(content, HwsFftPlan.N_OFFSET, isKnown ? rank : 1);
        inembed = integer(content, HwsFftPlan.HAS_INEMBED_OFFSET) == 0 ? null
            : array(content, HwsFftPlan.INEMBED_OFFSET, n.length);
        onembed = integer(content, HwsFftPlan.HAS_ONEMBED_OFFSET) == 0 ? null
            : array(content, HwsFftPlan.ONEMBED_OFFSET, n.length);
        istride = number(content, HwsFftPlan.ISTRIDE_OFFSET);
        idist = number(content, HwsFftPlan.IDIST_OFFSET);
        ostride = number(content, HwsFftPlan.OSTRIDE_OFFSET);
        odist = number(content, HwsFftPlan.ODIST_OFFSET);
        batch = number(content, HwsFftPlan.BATCH_OFFSET);
        boolean isXt = function == HwsFftFunction.HWS_FFT_XT;
        inputType = isXt ? integer(content, HwsFftPlan.INPUT_TYPE_OFFSET) : inputOf(type);
        outputType = isXt ? integer(content, HwsFftPlan.OUTPUT_TYPE_OFFSET) : outputOf(type);
        executionType = isXt ? integer(content, HwsFftPlan.EXECUTION_TYPE_OFFSET) : inputOf(type);
        status = isKnown ? check() : CUFFT_INVALID_VALUE;
    }

    /**
     * Reads arguments.
     *
     * @param content the struct HwsFftPlan.
     */
    public static FftPlan of(MemorySegment content) {
        return new FftPlan(content);
    }

    private static int integer(MemorySegment content, long offset) {
        return content.get(ValueLayout.JAVA_INT_UNALIGNED, offset);
    }

    private static long number(MemorySegment content, long offset) {
        return content.get(ValueLayout.JAVA_LONG_UNALIGNED, offset);
    }

    private static long[] array(MemorySegment content, long offset, int length) {
        long[] array = new long[length];
        for (int i = 0; i < length; i++) {
            array[i] = number(content, offset + (long) i * Long.BYTES);
        }
        return array;
    }

    private static int inputOf(int type) {
        return switch (type) {
            case cufftType.CUFFT_C2C, cufftType.CUFFT_C2R -> cudaDataType_t.CUDA_C_32F;
            case cufftType.CUFFT_Z2Z, cufftType.CUFFT_Z2D -> cudaDataType_t.CUDA_C_64F;
            case cufftType.CUFFT_R2C -> cudaDataType_t.CUDA_R_32F;
            case cufftType.CUFFT_D2Z -> cudaDataType_t.CUDA_R_64F;
            default -> -1;
        };
    }

    private static int outputOf(int type) {
        return switch (type) {
            case cufftType.CUFFT_C2C, cufftType.CUFFT_R2C -> cudaDataType_t.CUDA_C_32F;
            case cufftType.CUFFT_Z2Z, cufftType.CUFFT_D2Z -> cudaDataType_t.CUDA_C_64F;
            case cufftType.CUFFT_C2R -> cudaDataType_t.CUDA_R_32F;
            case cufftType.CUFFT_Z2D -> cudaDataType_t.CUDA_R_64F;
            default -> -1;
        };
    }

    private static boolean isComplex(int dataType) {
        return dataType == cudaDataType_t.CUDA_C_16F || dataType == cudaDataType_t.CUDA_C_16BF
            || dataType == cudaDataType_t.CUDA_C_32F || dataType == cudaDataType_t.CUDA_C_64F;
    }

    /** Bytes of an element; 0 for a type that no transform has. */
    private static int elementBytes(int dataType) {
        return switch (dataType) {
            case cudaDataType_t.CUDA_R_16F, cudaDataType_t.CUDA_R_16BF -> 2;
            case cudaDataType_t.CUDA_C_16F, cudaDataType_t.CUDA_C_16BF, cudaDataType_t.CUDA_R_32F -> 4;
            case cudaDataType_t.CUDA_C_32F, cudaDataType_t.CUDA_R_64F -> 8;
            case cudaDataType_t.CUDA_C_64F -> 16;
            default -> 0;
        };
    }

    /** Why no plan has these arguments; computes what an execution accesses. */
    private int check() {
        if (function < HwsFftFunction.HWS_FFT_1D || function > HwsFftFunction.HWS_FFT_XT) {
            return CUFFT_INVALID_VALUE;
        }
        boolean isSimple = function <= HwsFftFunction.HWS_FFT_3D; // 1D, 2D and 3D are 1, 2 and 3
        if (isSimple && (n.length != function || inembed != null || onembed != null
            || function != HwsFftFunction.HWS_FFT_1D && batch != 1)) {
            return CUFFT_INVALID_VALUE;
        }
        if (elementBytes(inputType) == 0 || elementBytes(outputType) == 0
            || !isComplex(inputType) && !isComplex(outputType)) {
            return CUFFT_INVALID_TYPE;
        }
        if (!isPositive(n) || batch < 1 || function <= HwsFftFunction.HWS_FFT_MANY && !fitInt()) {
            return CUFFT_INVALID_SIZE;
        }
        try {
            return isAdvanced() ? layOutAdvanced() : layOutBasic();
        } catch (ArithmeticException e) { // a product over 2^63
            return CUFFT_INVALID_SIZE;
        }
    }

    private static boolean isPositive(long[] numbers) {
        for (long number : numbers) {
            if (number < 1) {
                return false;
            }
        }
        return true;
    }

    private boolean fitInt() {
        boolean fits = batch == (int) batch && istride == (int) istride && idist == (int) idist
            && ostride == (int) ostride && odist == (int) odist;
        for (int i = 0; i < n.length; i++) {
            fits &= n[i] == (int) n[i] && (inembed == null || inembed[i] == (int) inembed[i])
                && (onembed == null || onembed[i] == (int) onembed[i]);
        }
        return fits;
    }

    /** Whether the strides count: without one of the arrays, cuFFT ignores all other arguments of the layout. */
    private boolean isAdvanced() {
        return inembed != null && onembed != null;
    }

    private int layOutAdvanced() {
        if (istride < 1 || ostride < 1 || batch > 1 && (idist < 0 || odist < 0)) {
            return CUFFT_INVALID_VALUE;
        }
        for (int i = 1; i < n.length; i++) {
            if (inembed[i] < 1 || onembed[i] < 1) {
                return CUFFT_INVALID_VALUE;
            }
        }
        input = side(inputType, inembed, istride, idist);
        output = side(outputType, onembed, ostride, odist);
        paddedInput = input;
        paddedOutput = output;
        return CUFFT_SUCCESS;
    }

    private int layOutBasic() {
        input = packed(inputType, sizes(inputType));
        output = packed(outputType, sizes(outputType));
        // In place, the real rows lie where the complex ones do, which are longer.
        paddedInput = isComplex(inputType) ? input : packed(inputType, padded());
        paddedOutput = isComplex(outputType) ? output : packed(outputType, padded());
        return CUFFT_SUCCESS;
    }

    /** Elements in each dimension: a spectrum of real numbers has its half only. */
    private long[] sizes(int dataType) {
        long[] sizes = n.clone();
        if (isComplex(dataType) && !(isComplex(inputType) && isComplex(outputType))) {
            sizes[n.length - 1] = n[n.length - 1] / 2 + 1;
        }
        return sizes;
    }

    private long[] padded() {
        long[] padded = n.clone();
        padded[n.length - 1] = Math.multiplyExact(n[n.length - 1] / 2 + 1, 2);
        return padded;
    }

    private Side packed(int dataType, long[] embed) {
        long dist = 1;
        for (long size : embed) {
            dist = Math.multiplyExact(dist, size);
        }
        return side(dataType, embed, 1, dist);
    }

    private Side side(int dataType, long[] embed, long stride, long dist) {
        long[] sizes = sizes(dataType);
        long[] steps = new long[n.length];
        long step = stride;
        for (int i = n.length - 1; i >= 0; i--) {
            steps[i] = step;
            step = i == 0 ? step : Math.multiplyExact(step, embed[i]);
        }
        long last = batch == 1 ? 0 : Math.multiplyExact(batch - 1, dist); // the distance of one batch has no meaning
        for (int i = 0; i < n.length; i++) {
            last = Math.addExact(last, Math.multiplyExact(sizes[i] - 1, steps[i]));
        }
        int elementBytes = elementBytes(dataType);
        return new Side(sizes, steps, batch == 1 ? 0 : dist, elementBytes, isComplex(dataType),
            Math.multiplyExact(Math.addExact(last, 1), elementBytes));
    }

    /** CUFFT_SUCCESS when the library may get these arguments; the methods below need that. */
    public int status() {
        return status;
    }

    /** The function of the program; one of HwsFftFunction. */
    public int function() {
        return function;
    }

    /** The cufftType; 0 for cufftXtMakePlanMany. */
    public int type() {
        return type;
    }

    /** The cudaDataType of the input. */
    public int inputType() {
        return inputType;
    }

    /** The cudaDataType of the output. */
    public int outputType() {
        return outputType;
    }

    /** The cudaDataType of the computation. */
    public int executionType() {
        return executionType;
    }

    /** Size of the transform in each dimension. */
    public long[] sizes() {
        return n.clone();
    }

    /** Storage dimensions of the input; null for none. */
    public long[] inputEmbed() {
        return inembed == null ? null : inembed.clone();
    }

    /** Storage dimensions of the output; null for none. */
    public long[] outputEmbed() {
        return onembed == null ? null : onembed.clone();
    }

    /** The argument istride. */
    public long inputStride() {
        return istride;
    }

    /** The argument idist. */
    public long inputDist() {
        return idist;
    }

    /** The argument ostride. */
    public long outputStride() {
        return ostride;
    }

    /** The argument odist. */
    public long outputDist() {
        return odist;
    }

    /** Number of transforms. */
    public long batch() {
        return batch;
    }

    /** What an execution reads. */
    public Side input(boolean isInPlace) {
        return isInPlace ? paddedInput : input;
    }

    /** What an execution writes. */
    public Side output(boolean isInPlace) {
        return isInPlace ? paddedOutput : output;
    }

    /**
     * Whether a function executes this plan.
     *
     * @param wanted the cufftType of the function; 0 for cufftXtExec, which executes every plan.
     */
    public boolean serves(int wanted) {
        return wanted == 0 || inputOf(wanted) == inputType && outputOf(wanted) == outputType;
    }
}
