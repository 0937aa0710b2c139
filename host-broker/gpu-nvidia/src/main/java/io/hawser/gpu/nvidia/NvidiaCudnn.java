package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.CudnnBackend;
import io.hawser.cuda.backend.NativeLibrary;
import io.hawser.cuda.generated.cudnn.CudnnDriver;
import io.hawser.cuda.generated.cudnn.CudnnForeign;
import io.hawser.cuda.generated.cudnn.CudnnNative;
import io.hawser.cuda.generated.cudnn.HwsDnnCtcLoss;
import io.hawser.cuda.generated.cudnn.HwsDnnWeights;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** NVIDIA's cuDNN. Session thread. */
final class NvidiaCudnn implements CudnnBackend {
    /** An assumption: the library documents no number. A handle of cuBLAS is part of one of cuDNN. */
    private static final long HANDLE_BYTES = 40 << 20;
    private static final int MAX_DIMS = 8; // CUDNN_DIM_MAX
    private static final long WEIGHTS = 0x1000; // any address: the library only adds to it

    private final CudnnNative library;
    private final CudnnForeign driver;
    private final NvidiaDnnContent contents;

    NvidiaCudnn(NativeLibrary library) {
        this.library = new CudnnNative(library);
        driver = new CudnnForeign(library);
        contents = new NvidiaDnnContent(this.library);
    }

    @Override
    public CudnnDriver driver() {
        return driver;
    }

    @Override
    public int create(MemorySegment out) {
        return library.cudnnCreate(out);
    }

    @Override
    public int destroy(long handle) {
        return library.cudnnDestroy(handle);
    }

    @Override
    public long handleBytes() {
        return HANDLE_BYTES;
    }

    @Override
    public int setStream(long handle, long stream) {
        return library.cudnnSetStream(handle, stream);
    }

    @Override
    public long[] versions() { // size_t, but far below 2^31
        return new long[] {library.cudnnGetVersion(), library.cudnnGetCudartVersion(),
            library.cudnnGetMaxDeviceVersion()};
    }

    @Override
    public void lastError(MemorySegment message) {
        library.cudnnGetLastErrorString(message, message.byteSize());
    }

    @Override
    public int createDescriptor(int kind, MemorySegment out) {
        return library.cudnnBackendCreateDescriptor(kind, out);
    }

    @Override
    public int setAttribute(long descriptor, int name, int type, long count, MemorySegment values) {
        return library.cudnnBackendSetAttribute(descriptor, name, type, count, values);
    }

    @Override
    public int finalizeDescriptor(long descriptor) {
        return library.cudnnBackendFinalize(descriptor);
    }

    @Override
    public int getAttribute(long descriptor, int name, int type, long requested, MemorySegment count,
        MemorySegment values) {
        return library.cudnnBackendGetAttribute(descriptor, name, type, requested, count, values);
    }

    @Override
    public void destroyDescriptor(long descriptor) {
        library.cudnnBackendDestroyDescriptor(descriptor);
    }

    @Override
    public int execute(long handle, long plan, long variantPack) {
        return library.cudnnBackendExecute(handle, plan, variantPack);
    }

    @Override
    public int make(Content content, MemorySegment out) {
        return contents.make(content, out);
    }

    @Override
    public void destroy(Kind kind, long descriptor) {
        contents.destroy(kind, descriptor);
    }

    @Override
    public int fillDropout(long handle, float dropout, long states, long bytes, long seed) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
            int status = library.cudnnCreateDropoutDescriptor(out);
            if (status != 0) {
                return status;
            }
            long descriptor = out.get(ValueLayout.JAVA_LONG, 0);
            status = library.cudnnSetDropoutDescriptor(descriptor, handle, dropout, MemorySegment.ofAddress(states),
                bytes, seed);
            library.cudnnDestroyDropoutDescriptor(descriptor);
            return status;
        }
    }

    @Override
    public int weights(long handle, long rnn, int pseudoLayer, long weightBytes, int linLayer, MemorySegment matrix,
        MemorySegment bias) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment made = arena.allocate(ValueLayout.JAVA_LONG, 2);
            MemorySegment addresses = arena.allocate(ValueLayout.JAVA_LONG, 2);
            int status = library.cudnnCreateTensorDescriptor(made);
            if (status != 0) {
                return status;
            }
            long first = made.get(ValueLayout.JAVA_LONG, 0);
            status = library.cudnnCreateTensorDescriptor(made);
            if (status != 0) {
                library.cudnnDestroyTensorDescriptor(first);
                return status;
            }
            long second = made.get(ValueLayout.JAVA_LONG, 0);
            status = library.cudnnGetRNNWeightParams(handle, rnn, pseudoLayer, weightBytes,
                MemorySegment.ofAddress(WEIGHTS), linLayer, first, addresses, second, addresses.asSlice(Long.BYTES));
            status = status != 0 ? status : describe(first, addresses.get(ValueLayout.JAVA_LONG, 0), matrix, arena);
            status = status != 0 ? status
                : describe(second, addresses.get(ValueLayout.JAVA_LONG, Long.BYTES), bias, arena);
            library.cudnnDestroyTensorDescriptor(first);
            library.cudnnDestroyTensorDescriptor(second);
            return status;
        }
    }

    @Override
    public int ctcLoss(long handle, MemorySegment loss, MemorySegment labels, MemorySegment labelLengths,
        MemorySegment inputLengths, MemorySegment workspaceBytes) {
        long probs = number(loss, HwsDnnCtcLoss.PROBS_DESC_OFFSET);
        long gradients = number(loss, HwsDnnCtcLoss.GRADIENTS_DESC_OFFSET);
        long ctc = number(loss, HwsDnnCtcLoss.CTC_LOSS_DESC_OFFSET);
        int algo = loss.get(ValueLayout.JAVA_INT_UNALIGNED, HwsDnnCtcLoss.ALGO_OFFSET);
        if (workspaceBytes != null) {
            return library.cudnnGetCTCLossWorkspaceSize(handle, probs, gradients, labels, labelLengths, inputLengths,
                algo, ctc, workspaceBytes);
        }
        return library.cudnnCTCLoss(handle, probs, memory(loss, HwsDnnCtcLoss.PROBS_OFFSET), labels, labelLengths,
            inputLengths, memory(loss, HwsDnnCtcLoss.COSTS_OFFSET), gradients,
            memory(loss, HwsDnnCtcLoss.GRADIENTS_OFFSET), algo, ctc, memory(loss, HwsDnnCtcLoss.WORKSPACE_OFFSET),
            number(loss, HwsDnnCtcLoss.WORKSPACE_BYTES_OFFSET));
    }

    private static long number(MemorySegment content, int offset) {
        return content.get(ValueLayout.JAVA_LONG_UNALIGNED, offset);
    }

    private static MemorySegment memory(MemorySegment content, int offset) {
        return MemorySegment.ofAddress(number(content, offset));
    }

    private int describe(long descriptor, long address, MemorySegment weights, Arena arena) {
        weights.fill((byte) 0);
        if (address == 0) {
            return 0;
        }
        MemorySegment type = arena.allocate(ValueLayout.JAVA_INT);
        MemorySegment dims = arena.allocate(ValueLayout.JAVA_INT);
        int status = library.cudnnGetTensorNdDescriptor(descriptor, MAX_DIMS, type, dims,
            weights.asSlice(HwsDnnWeights.SIZES_OFFSET, MAX_DIMS * (long) Integer.BYTES),
            weights.asSlice(HwsDnnWeights.STRIDES_OFFSET, MAX_DIMS * (long) Integer.BYTES));
        weights.set(ValueLayout.JAVA_INT, HwsDnnWeights.IS_PRESENT_OFFSET, 1);
        weights.set(ValueLayout.JAVA_INT, HwsDnnWeights.DATA_TYPE_OFFSET, type.get(ValueLayout.JAVA_INT, 0));
        weights.set(ValueLayout.JAVA_INT, HwsDnnWeights.DIMS_OFFSET, dims.get(ValueLayout.JAVA_INT, 0));
        weights.set(ValueLayout.JAVA_LONG, HwsDnnWeights.OFFSET_OFFSET, address - WEIGHTS);
        return status;
    }
}
