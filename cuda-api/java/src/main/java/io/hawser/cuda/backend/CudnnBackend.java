package io.hawser.cuda.backend;

import io.hawser.cuda.generated.cudnn.CudnnDriver;
import io.hawser.cuda.generated.cudnn.cudnnStatus_t;
import java.lang.foreign.MemorySegment;

/**
 * cuDNN of a GPU. Results are of cudnnStatus_t; no method throws for any input of a guest. The thread and the current
 * context are those of {@link GpuBackend#driver}. Objects are the library's own: descriptors of graphs, and those of
 * the older functions.
 */
public interface CudnnBackend extends MathHandles {
    /** The older functions. Handles and descriptors are pointers with the library's values. */
    CudnnDriver driver();

    /** As cudnnSetStream. */
    int setStream(long handle, long stream);

    /** As cudnnGetVersion, cudnnGetCudartVersion and cudnnGetMaxDeviceVersion. */
    long[] versions();

    /** As cudnnGetLastErrorString; {@code message} receives a text that ends with 0. */
    void lastError(MemorySegment message);

    /** As cudnnBackendCreateDescriptor; {@code out} receives the descriptor (8 bytes). */
    int createDescriptor(int kind, MemorySegment out);

    /** As cudnnBackendSetAttribute. Descriptors and handles are the library's. */
    int setAttribute(long descriptor, int name, int type, long count, MemorySegment values);

    /** As cudnnBackendFinalize. */
    int finalizeDescriptor(long descriptor);

    /** As cudnnBackendGetAttribute; {@code count} receives a 64-bit number. */
    int getAttribute(long descriptor, int name, int type, long requested, MemorySegment count, MemorySegment values);

    /** As cudnnBackendDestroyDescriptor. */
    void destroyDescriptor(long descriptor);

    /** As cudnnBackendExecute. */
    int execute(long handle, long plan, long variantPack);

    /**
     * Makes a descriptor of the older functions.
     *
     * @param out receives the descriptor (8 bytes).
     */
    int make(Content content, MemorySegment out);

    /** Destroys a descriptor of {@link #make}. */
    void destroy(Kind kind, long descriptor);

    /** Fills the states of a dropout, as cudnnSetDropoutDescriptor. */
    int fillDropout(long handle, float dropout, long states, long bytes, long seed);

    /**
     * As cudnnGetRNNWeightParams, with weights at address 0x1000.
     *
     * @param matrix the struct HwsDnnWeights.
     * @param bias the struct HwsDnnWeights.
     */
    int weights(long handle, long rnn, int pseudoLayer, long weightBytes, int linLayer, MemorySegment matrix,
        MemorySegment bias);

    /**
     * As cudnnCTCLoss with labels and lengths in host memory, or as cudnnGetCTCLossWorkspaceSize.
     *
     * @param loss the struct HwsDnnCtcLoss, whose descriptors are the library's, and whose memory is checked.
     * @param labels as many numbers as the sum of {@code labelLengths}.
     * @param labelLengths of each sequence of the tensor of probabilities, as {@code inputLengths}.
     * @param workspaceBytes receives the size (8 bytes) for a question; null for the loss itself.
     */
    default int ctcLoss(long handle, MemorySegment loss, MemorySegment labels, MemorySegment labelLengths,
        MemorySegment inputLengths, MemorySegment workspaceBytes) {
        return cudnnStatus_t.CUDNN_STATUS_NOT_SUPPORTED;
    }

    /**
     * The content of a descriptor of the older functions, as hws_cudnn.h and content.c have it. The numbers are as many
     * as the kind needs.
     *
     * @param part a descriptor of the library that this one refers to; 0 for none.
     * @param handle a handle of the library; 0 for none.
     * @param address device memory; 0 for none.
     */
    record Content(Kind kind, long[] numbers, double[] reals, long part, long handle, long address) {
        /** A number as C's int. */
        public int number(int index) {
            return (int) numbers[index];
        }
    }

    /** Kinds of descriptors of the older functions, from number {@value #FIRST} on (HWS_DNN_TENSOR in hws_cudnn.h). */
    enum Kind {
        TENSOR, FILTER, CONVOLUTION, ACTIVATION, POOLING, DROPOUT, RNN, RNN_DATA, CTC, SPATIAL, OP_TENSOR, REDUCE, LRN;

        /** The number of {@link #TENSOR}. */
        public static final int FIRST = 1001;

        /** The kind with a number; null for none. */
        public static Kind of(int number) {
            int index = number - FIRST;
            return index < 0 || index >= values().length ? null : values()[index];
        }
    }
}
