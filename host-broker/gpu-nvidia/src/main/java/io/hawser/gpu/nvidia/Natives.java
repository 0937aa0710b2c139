package io.hawser.gpu.nvidia;

import static io.hawser.cuda.generated.CUresult.*;

import io.hawser.cuda.generated.CudaNative;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.ToIntFunction;

/** Helpers for driver calls with one output. Any thread. */
final class Natives {
    private Natives() {
    }

    /** The handle that a call creates; its negated CUresult on failure. */
    static long created(ToIntFunction<MemorySegment> call) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
            int result = call.applyAsInt(out);
            return result == 0 ? out.get(ValueLayout.JAVA_LONG, 0) : -result;
        }
    }

    /** The 32-bit output of a call; {@code failed} on failure. */
    static int number(ToIntFunction<MemorySegment> call, int failed) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_INT);
            return call.applyAsInt(out) == 0 ? out.get(ValueLayout.JAVA_INT, 0) : failed;
        }
    }

    /** Name of a CUresult, for logs. */
    static String errorName(int result) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
            return CudaNative.cuGetErrorName(result, out) == 0
                ? out.get(ValueLayout.ADDRESS, 0).reinterpret(Long.MAX_VALUE).getString(0) : "CUresult=" + result;
        }
    }

    /** Throws if a call has failed that must succeed. */
    static void check(String call, int result) {
        if (result != 0) {
            throw new IllegalStateException("the GPU does not start: " + call + ": " + errorName(result));
        }
    }

    /** Whether the process can do no more work on the device after an error. */
    static boolean isPoisoned(int result) {
        return switch (result) {
            // as CUDA documents
            case CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_NVLINK_UNCORRECTABLE, CUDA_ERROR_ILLEGAL_ADDRESS,
                CUDA_ERROR_LAUNCH_TIMEOUT, CUDA_ERROR_ASSERT, CUDA_ERROR_HARDWARE_STACK_ERROR,
                CUDA_ERROR_ILLEGAL_INSTRUCTION, CUDA_ERROR_MISALIGNED_ADDRESS, CUDA_ERROR_INVALID_ADDRESS_SPACE,
                CUDA_ERROR_INVALID_PC, CUDA_ERROR_LAUNCH_FAILED -> true;
            // of MPS: its server has failed, or has ended this process's work
            case CUDA_ERROR_MPS_CONNECTION_FAILED, CUDA_ERROR_MPS_RPC_FAILURE, CUDA_ERROR_MPS_CLIENT_TERMINATED ->
                true;
            default -> false;
        };
    }
}
