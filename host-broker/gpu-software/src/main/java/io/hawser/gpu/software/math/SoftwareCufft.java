package io.hawser.gpu.software.math;

import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_EXEC_FAILED;
import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_INVALID_VALUE;
import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_NOT_SUPPORTED;
import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_SUCCESS;

import io.hawser.cuda.backend.CufftBackend;
import io.hawser.cuda.backend.FftPlan;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.cublas.cudaDataType_t;
import io.hawser.cuda.generated.cublas.libraryPropertyType_t;
import io.hawser.cuda.generated.cufft.HwsFftDirection;
import io.hawser.gpu.software.work.HandleStreams;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * cuFFT on the software GPU: transforms in float and double, computed in double, in stream order. Plans in 16 bits and
 * those that would fill the worker's memory return "not supported". Session thread; the work runs on the device's
 * threads.
 */
final class SoftwareCufft implements CufftBackend {
    private static final int[] VERSION = {12, 0, 0}; // of the interface, as CUDA 13.0 has it

    private final GpuBackend gpu;
    private final FourierWork work = new FourierWork();
    private final HandleStreams streams = new HandleStreams(); // of plans

    SoftwareCufft(GpuBackend gpu) {
        this.gpu = gpu;
    }

    @Override
    public int version(MemorySegment value) {
        value.set(ValueLayout.JAVA_INT, 0, VERSION[0] * 1000 + VERSION[1] * 100 + VERSION[2]);
        return CUFFT_SUCCESS;
    }

    @Override
    public int property(int type, MemorySegment value) {
        if (type < libraryPropertyType_t.MAJOR_VERSION || type > libraryPropertyType_t.PATCH_LEVEL) {
            return CUFFT_INVALID_VALUE;
        }
        value.set(ValueLayout.JAVA_INT, 0, VERSION[type]);
        return CUFFT_SUCCESS;
    }

    /** Whether this GPU computes a plan: input, output and computation have one precision of 32 or 64 bits. */
    private static boolean isServed(FftPlan plan) {
        int precision = precision(plan.inputType());
        return precision != 0 && precision == precision(plan.outputType())
            && precision == precision(plan.executionType()) && FourierWork.fits(plan);
    }

    private static int precision(int dataType) {
        return switch (dataType) {
            case cudaDataType_t.CUDA_R_32F, cudaDataType_t.CUDA_C_32F -> Float.BYTES;
            case cudaDataType_t.CUDA_R_64F, cudaDataType_t.CUDA_C_64F -> Double.BYTES;
            default -> 0;
        };
    }

    /** The work lies in the worker's own memory. */
    @Override
    public int workSize(FftPlan plan, boolean isEstimate, MemorySegment out) {
        out.set(ValueLayout.JAVA_LONG, 0, 0);
        return isServed(plan) ? CUFFT_SUCCESS : CUFFT_NOT_SUPPORTED;
    }

    @Override
    public int make(FftPlan plan, MemorySegment made, MemorySegment workSize) {
        int status = workSize(plan, false, workSize);
        if (status == CUFFT_SUCCESS) {
            streams.add(made);
        }
        return status;
    }

    @Override
    public int destroy(long handle) {
        streams.remove(handle);
        return CUFFT_SUCCESS;
    }

    @Override
    public long planBytes() {
        return 0;
    }

    @Override
    public int setStream(long handle, long stream) {
        streams.set(handle, stream);
        return CUFFT_SUCCESS;
    }

    @Override
    public int setWorkArea(long handle, long address) {
        return CUFFT_SUCCESS; // not used
    }

    @Override
    public int execute(long handle, FftPlan plan, int type, long input, long output, int direction) {
        boolean isReal = !plan.input(false).isComplex() || !plan.output(false).isComplex();
        if (!isReal && direction != HwsFftDirection.CUFFT_FORWARD && direction != HwsFftDirection.CUFFT_INVERSE) {
            return CUFFT_INVALID_VALUE;
        }
        // The types tell the direction of a transform of real numbers.
        boolean isForward = isReal ? plan.output(false).isComplex() : direction == HwsFftDirection.CUFFT_FORWARD;
        return gpu.hostFunction(streams.of(handle), () -> work.transform(plan, input, output, isForward)) == 0
            ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
    }
}
