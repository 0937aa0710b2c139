package io.hawser.gpu.nvidia;

import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_INVALID_VALUE;
import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_SUCCESS;

import io.hawser.cuda.backend.CufftBackend;
import io.hawser.cuda.backend.FftPlan;
import io.hawser.cuda.backend.NativeLibrary;
import io.hawser.cuda.generated.cufft.CufftNative;
import io.hawser.cuda.generated.cufft.HwsFftFunction;
import io.hawser.cuda.generated.cufft.cufftType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** NVIDIA's cuFFT. Each plan is made by the function that the program has called. Session thread. */
final class NvidiaCufft implements CufftBackend {
    /** An assumption: the library documents no number for the tables of a plan. */
    private static final long PLAN_BYTES = 64 << 10;

    private final CufftNative library;

    NvidiaCufft(NativeLibrary library) {
        this.library = new CufftNative(library);
    }

    @Override
    public int version(MemorySegment value) {
        return library.cufftGetVersion(value);
    }

    @Override
    public int property(int type, MemorySegment value) {
        return library.cufftGetProperty(type, value);
    }

    @Override
    public int workSize(FftPlan plan, boolean isEstimate, MemorySegment out) {
        try (Arena arena = Arena.ofConfined()) {
            if (isEstimate) {
                return estimate(plan, arena, out);
            }
            MemorySegment made = arena.allocate(Integer.BYTES, Integer.BYTES);
            int status = library.cufftCreate(made);
            if (status != CUFFT_SUCCESS) {
                return status;
            }
            int handle = made.get(ValueLayout.JAVA_INT, 0);
            status = getSize(handle, plan, arena, out);
            int destroyed = library.cufftDestroy(handle);
            return status != CUFFT_SUCCESS ? status : destroyed;
        }
    }

    @Override
    public int make(FftPlan plan, MemorySegment made, MemorySegment workSize) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment created = arena.allocate(Integer.BYTES, Integer.BYTES);
            int status = library.cufftCreate(created);
            if (status != CUFFT_SUCCESS) {
                return status;
            }
            int handle = created.get(ValueLayout.JAVA_INT, 0);
            status = library.cufftSetAutoAllocation(handle, 0); // the caller charges the work area
            status = status != CUFFT_SUCCESS ? status : make(handle, plan, arena, workSize);
            if (status != CUFFT_SUCCESS) {
                library.cufftDestroy(handle);
                return status;
            }
            made.set(ValueLayout.JAVA_LONG, 0, handle);
            return CUFFT_SUCCESS;
        }
    }

    private static MemorySegment integers(Arena arena, long[] numbers) {
        MemorySegment array = numbers == null ? MemorySegment.NULL
            : arena.allocate(ValueLayout.JAVA_INT, numbers.length);
        for (int i = 0; numbers != null && i < numbers.length; i++) {
            array.setAtIndex(ValueLayout.JAVA_INT, i, (int) numbers[i]); // FftPlan has checked that they fit
        }
        return array;
    }

    private static MemorySegment longs(Arena arena, long[] numbers) {
        return numbers == null ? MemorySegment.NULL : arena.allocateFrom(ValueLayout.JAVA_LONG, numbers);
    }

    private int make(int handle, FftPlan plan, Arena arena, MemorySegment out) {
        long[] n = plan.sizes();
        return switch (plan.function()) {
            case HwsFftFunction.HWS_FFT_1D ->
                library.cufftMakePlan1d(handle, (int) n[0], plan.type(), (int) plan.batch(), out);
            case HwsFftFunction.HWS_FFT_2D -> library.cufftMakePlan2d(handle, (int) n[0], (int) n[1], plan.type(), out);
            case HwsFftFunction.HWS_FFT_3D ->
                library.cufftMakePlan3d(handle, (int) n[0], (int) n[1], (int) n[2], plan.type(), out);
            case HwsFftFunction.HWS_FFT_MANY -> library.cufftMakePlanMany(handle, n.length, integers(arena, n),
                integers(arena, plan.inputEmbed()), (int) plan.inputStride(), (int) plan.inputDist(),
                integers(arena, plan.outputEmbed()), (int) plan.outputStride(), (int) plan.outputDist(), plan.type(),
                (int) plan.batch(), out);
            case HwsFftFunction.HWS_FFT_MANY64 -> library.cufftMakePlanMany64(handle, n.length, longs(arena, n),
                longs(arena, plan.inputEmbed()), plan.inputStride(), plan.inputDist(),
                longs(arena, plan.outputEmbed()), plan.outputStride(), plan.outputDist(), plan.type(), plan.batch(),
                out);
            case HwsFftFunction.HWS_FFT_XT -> library.cufftXtMakePlanMany(handle, n.length, longs(arena, n),
                longs(arena, plan.inputEmbed()), plan.inputStride(), plan.inputDist(), plan.inputType(),
                longs(arena, plan.outputEmbed()), plan.outputStride(), plan.outputDist(), plan.outputType(),
                plan.batch(), out, plan.executionType());
            default -> CUFFT_INVALID_VALUE;
        };
    }

    private int getSize(int handle, FftPlan plan, Arena arena, MemorySegment out) {
        long[] n = plan.sizes();
        return switch (plan.function()) {
            case HwsFftFunction.HWS_FFT_1D ->
                library.cufftGetSize1d(handle, (int) n[0], plan.type(), (int) plan.batch(), out);
            case HwsFftFunction.HWS_FFT_2D -> library.cufftGetSize2d(handle, (int) n[0], (int) n[1], plan.type(), out);
            case HwsFftFunction.HWS_FFT_3D ->
                library.cufftGetSize3d(handle, (int) n[0], (int) n[1], (int) n[2], plan.type(), out);
            case HwsFftFunction.HWS_FFT_MANY -> library.cufftGetSizeMany(handle, n.length, integers(arena, n),
                integers(arena, plan.inputEmbed()), (int) plan.inputStride(), (int) plan.inputDist(),
                integers(arena, plan.outputEmbed()), (int) plan.outputStride(), (int) plan.outputDist(), plan.type(),
                (int) plan.batch(), out);
            case HwsFftFunction.HWS_FFT_MANY64 -> library.cufftGetSizeMany64(handle, n.length, longs(arena, n),
                longs(arena, plan.inputEmbed()), plan.inputStride(), plan.inputDist(),
                longs(arena, plan.outputEmbed()), plan.outputStride(), plan.outputDist(), plan.type(), plan.batch(),
                out);
            case HwsFftFunction.HWS_FFT_XT -> library.cufftXtGetSizeMany(handle, n.length, longs(arena, n),
                longs(arena, plan.inputEmbed()), plan.inputStride(), plan.inputDist(), plan.inputType(),
                longs(arena, plan.outputEmbed()), plan.outputStride(), plan.outputDist(), plan.outputType(),
                plan.batch(), out, plan.executionType());
            default -> CUFFT_INVALID_VALUE;
        };
    }

    /** cuFFT has no estimates for 64-bit sizes. */
    private int estimate(FftPlan plan, Arena arena, MemorySegment out) {
        long[] n = plan.sizes();
        return switch (plan.function()) {
            case HwsFftFunction.HWS_FFT_1D ->
                library.cufftEstimate1d((int) n[0], plan.type(), (int) plan.batch(), out);
            case HwsFftFunction.HWS_FFT_2D -> library.cufftEstimate2d((int) n[0], (int) n[1], plan.type(), out);
            case HwsFftFunction.HWS_FFT_3D ->
                library.cufftEstimate3d((int) n[0], (int) n[1], (int) n[2], plan.type(), out);
            case HwsFftFunction.HWS_FFT_MANY -> library.cufftEstimateMany(n.length, integers(arena, n),
                integers(arena, plan.inputEmbed()), (int) plan.inputStride(), (int) plan.inputDist(),
                integers(arena, plan.outputEmbed()), (int) plan.outputStride(), (int) plan.outputDist(), plan.type(),
                (int) plan.batch(), out);
            default -> CUFFT_INVALID_VALUE;
        };
    }

    @Override
    public int destroy(long handle) {
        return library.cufftDestroy((int) handle);
    }

    @Override
    public long planBytes() {
        return PLAN_BYTES;
    }

    @Override
    public int setStream(long handle, long stream) {
        return library.cufftSetStream((int) handle, stream);
    }

    @Override
    public int setWorkArea(long handle, long address) {
        return library.cufftSetWorkArea((int) handle, MemorySegment.ofAddress(address));
    }

    @Override
    public int execute(long handle, FftPlan plan, int type, long input, long output, int direction) {
        MemorySegment in = MemorySegment.ofAddress(input);
        MemorySegment out = MemorySegment.ofAddress(output);
        return switch (type) {
            case 0 -> library.cufftXtExec((int) handle, in, out, direction);
            case cufftType.CUFFT_C2C -> library.cufftExecC2C((int) handle, in, out, direction);
            case cufftType.CUFFT_R2C -> library.cufftExecR2C((int) handle, in, out);
            case cufftType.CUFFT_C2R -> library.cufftExecC2R((int) handle, in, out);
            case cufftType.CUFFT_Z2Z -> library.cufftExecZ2Z((int) handle, in, out, direction);
            case cufftType.CUFFT_D2Z -> library.cufftExecD2Z((int) handle, in, out);
            case cufftType.CUFFT_Z2D -> library.cufftExecZ2D((int) handle, in, out);
            default -> CUFFT_INVALID_VALUE;
        };
    }
}
