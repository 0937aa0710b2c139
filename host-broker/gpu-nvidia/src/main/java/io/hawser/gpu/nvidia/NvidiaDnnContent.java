package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.CudnnBackend.Content;
import io.hawser.cuda.backend.CudnnBackend.Kind;
import io.hawser.cuda.generated.cudnn.CudnnNative;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Makes descriptors of cuDNN's older functions from their contents. Session thread. */
final class NvidiaDnnContent {
    private final CudnnNative library;

    NvidiaDnnContent(CudnnNative library) {
        this.library = library;
    }

    /** Makes a descriptor; {@code out} receives it. */
    int make(Content content, MemorySegment out) {
        int status = create(content.kind(), out);
        if (status != 0) {
            return status;
        }
        long descriptor = out.get(ValueLayout.JAVA_LONG, 0);
        try (Arena arena = Arena.ofConfined()) {
            status = set(descriptor, content, arena);
        }
        if (status != 0) {
            destroy(content.kind(), descriptor);
        }
        return status;
    }

    private int create(Kind kind, MemorySegment out) {
        return switch (kind) {
            case TENSOR -> library.cudnnCreateTensorDescriptor(out);
            case FILTER -> library.cudnnCreateFilterDescriptor(out);
            case CONVOLUTION -> library.cudnnCreateConvolutionDescriptor(out);
            case ACTIVATION -> library.cudnnCreateActivationDescriptor(out);
            case POOLING -> library.cudnnCreatePoolingDescriptor(out);
            case DROPOUT -> library.cudnnCreateDropoutDescriptor(out);
            case RNN -> library.cudnnCreateRNNDescriptor(out);
            case RNN_DATA -> library.cudnnCreateRNNDataDescriptor(out);
            case CTC -> library.cudnnCreateCTCLossDescriptor(out);
            case SPATIAL -> library.cudnnCreateSpatialTransformerDescriptor(out);
            case OP_TENSOR -> library.cudnnCreateOpTensorDescriptor(out);
            case REDUCE -> library.cudnnCreateReduceTensorDescriptor(out);
            case LRN -> library.cudnnCreateLRNDescriptor(out);
        };
    }

    void destroy(Kind kind, long descriptor) {
        switch (kind) {
            case TENSOR -> library.cudnnDestroyTensorDescriptor(descriptor);
            case FILTER -> library.cudnnDestroyFilterDescriptor(descriptor);
            case CONVOLUTION -> library.cudnnDestroyConvolutionDescriptor(descriptor);
            case ACTIVATION -> library.cudnnDestroyActivationDescriptor(descriptor);
            case POOLING -> library.cudnnDestroyPoolingDescriptor(descriptor);
            case DROPOUT -> library.cudnnDestroyDropoutDescriptor(descriptor);
            case RNN -> library.cudnnDestroyRNNDescriptor(descriptor);
            case RNN_DATA -> library.cudnnDestroyRNNDataDescriptor(descriptor);
            case CTC -> library.cudnnDestroyCTCLossDescriptor(descriptor);
            case SPATIAL -> library.cudnnDestroySpatialTransformerDescriptor(descriptor);
            case OP_TENSOR -> library.cudnnDestroyOpTensorDescriptor(descriptor);
            case REDUCE -> library.cudnnDestroyReduceTensorDescriptor(descriptor);
            case LRN -> library.cudnnDestroyLRNDescriptor(descriptor);
            default -> throw new IllegalArgumentException("kind=" + kind);
        }
    }

    /** Numbers as C's array of int. */
    private static MemorySegment ints(Content content, int from, int count, Arena arena) {
        MemorySegment array = arena.allocate(ValueLayout.JAVA_INT, count);
        for (int i = 0; i < count; i++) {
            array.setAtIndex(ValueLayout.JAVA_INT, i, content.number(from + i));
        }
        return array;
    }

    private int set(long made, Content c, Arena arena) {
        return switch (c.kind()) {
            case TENSOR -> {
                int dims = c.number(1);
                yield library.cudnnSetTensorNdDescriptor(made, c.number(0), dims, ints(c, 2, dims, arena),
                    ints(c, 2 + dims, dims, arena));
            }
            case FILTER -> library.cudnnSetFilterNdDescriptor(made, c.number(0), c.number(1), c.number(2),
                ints(c, 3, c.number(2), arena));
            case CONVOLUTION -> convolution(made, c, arena);
            case ACTIVATION -> {
                int status = library.cudnnSetActivationDescriptor(made, c.number(0), c.number(1), c.reals()[0]);
                yield status != 0 || c.reals()[1] == 1 ? status
                    : library.cudnnSetActivationDescriptorSwishBeta(made, c.reals()[1]);
            }
            case POOLING -> {
                int dims = c.number(2);
                yield library.cudnnSetPoolingNdDescriptor(made, c.number(0), c.number(1), dims,
                    ints(c, 3, dims, arena), ints(c, 3 + dims, dims, arena), ints(c, 3 + 2 * dims, dims, arena));
            }
            case DROPOUT -> c.address() == 0
                ? library.cudnnSetDropoutDescriptor(made, c.handle(), (float) c.reals()[0], MemorySegment.NULL, 0,
                    c.numbers()[1])
                : library.cudnnRestoreDropoutDescriptor(made, c.handle(), (float) c.reals()[0],
                    MemorySegment.ofAddress(c.address()), c.numbers()[0], c.numbers()[1]);
            case RNN -> {
                int status = library.cudnnSetRNNDescriptor_v8(made, c.number(0), c.number(1), c.number(2), c.number(3),
                    c.number(4), c.number(5), c.number(6), c.number(7), c.number(8), c.number(9), c.number(10),
                    c.number(11), c.part(), c.number(12));
                yield status != 0 || c.number(13) == 0 ? status
                    : library.cudnnRNNSetClip_v9(made, c.number(13), c.reals()[0], c.reals()[1]);
            }
            case RNN_DATA -> {
                MemorySegment padding = arena.allocate(ValueLayout.JAVA_LONG);
                padding.set(ValueLayout.JAVA_LONG, 0, c.numbers()[6]);
                yield library.cudnnSetRNNDataDescriptor(made, c.number(0), c.number(1), c.number(2), c.number(3),
                    c.number(4), ints(c, 7, c.number(3), arena), c.number(5) == 0 ? MemorySegment.NULL : padding);
            }
            case CTC -> c.number(0) == 0
                ? library.cudnnSetCTCLossDescriptorEx(made, c.number(1), c.number(2), c.number(3))
                : library.cudnnSetCTCLossDescriptor_v9(made, c.number(1), c.number(2), c.number(3), c.number(4));
            case SPATIAL -> library.cudnnSetSpatialTransformerNdDescriptor(made, c.number(0), c.number(1), c.number(2),
                ints(c, 3, c.number(2), arena));
            case OP_TENSOR -> library.cudnnSetOpTensorDescriptor(made, c.number(0), c.number(1), c.number(2));
            case REDUCE -> library.cudnnSetReduceTensorDescriptor(made, c.number(0), c.number(1), c.number(2),
                c.number(3), c.number(4));
            case LRN -> library.cudnnSetLRNDescriptor(made, c.number(0), c.reals()[0], c.reals()[1], c.reals()[2]);
        };
    }

    private int convolution(long made, Content c, Arena arena) {
        int dims = c.number(0);
        int rest = 1 + 3 * dims;
        int status = library.cudnnSetConvolutionNdDescriptor(made, dims, ints(c, 1, dims, arena),
            ints(c, 1 + dims, dims, arena), ints(c, 1 + 2 * dims, dims, arena), c.number(rest), c.number(rest + 1));
        status = status != 0 ? status : library.cudnnSetConvolutionGroupCount(made, c.number(rest + 2));
        status = status != 0 ? status : library.cudnnSetConvolutionMathType(made, c.number(rest + 3));
        return status != 0 ? status : library.cudnnSetConvolutionReorderType(made, c.number(rest + 4));
    }
}
