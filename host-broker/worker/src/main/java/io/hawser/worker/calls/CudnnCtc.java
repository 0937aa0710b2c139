package io.hawser.worker.calls;

import static io.hawser.cuda.generated.cudnn.cudnnStatus_t.CUDNN_STATUS_BAD_PARAM;

import io.hawser.cuda.backend.CudnnBackend.Kind;
import io.hawser.cuda.generated.cudnn.HwsDnnCtcLoss;
import io.hawser.worker.session.Call;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Checks CTC losses whose labels and lengths lie in host memory. The library reads a length for each sequence of the
 * tensor of probabilities, and as many labels as these lengths tell: in the worker's own memory. Session thread.
 */
final class CudnnCtc {
    private static final int DIMS = 3; // times, sequences, letters
    private static final int NUMBER_OF_DIMS = 1; // places in the content of a tensor: type, dimensions, sizes, strides
    private static final int NUMBER_OF_SEQUENCES = 3;
    private static final int[] DESCRIPTORS = {HwsDnnCtcLoss.PROBS_DESC_OFFSET, HwsDnnCtcLoss.GRADIENTS_DESC_OFFSET,
        HwsDnnCtcLoss.CTC_LOSS_DESC_OFFSET};

    private CudnnCtc() {
    }

    /**
     * Checks descriptors and arrays. Ends the call if they do not fit each other.
     *
     * @return the loss with the library's descriptors; meaningless when the call has ended.
     */
    static MemorySegment check(Call call, CudnnGraphs graphs, MemorySegment loss, long labelCount, long batch,
        MemorySegment labelLengths) {
        MemorySegment checked = call.scratch(HwsDnnCtcLoss.BYTES).copyFrom(loss);
        for (int offset : DESCRIPTORS) {
            CudnnObject object = object(call, graphs, loss, offset);
            if (call.isRejected()) {
                return checked;
            }
            checked.set(ValueLayout.JAVA_LONG_UNALIGNED, offset, object == null ? 0 : object.made());
        }
        CudnnObject probs = object(call, graphs, loss, HwsDnnCtcLoss.PROBS_DESC_OFFSET);
        boolean isTensor = probs != null && probs.content().numbers()[NUMBER_OF_DIMS] == DIMS
            && probs.content().numbers()[NUMBER_OF_SEQUENCES] == batch;
        long sum = 0;
        for (long i = 0; isTensor && i < batch; i++) {
            int length = labelLengths.getAtIndex(ValueLayout.JAVA_INT_UNALIGNED, i);
            sum = length < 0 ? Long.MIN_VALUE : sum + length; // at most 2^14 lengths of 31 bits
        }
        if (!isTensor || sum != labelCount) {
            call.fail(CUDNN_STATUS_BAD_PARAM);
        }
        return checked;
    }

    /** The object of a descriptor; null for none. Ends the call for another kind, which the guest never sends. */
    private static CudnnObject object(Call call, CudnnGraphs graphs, MemorySegment loss, int offset) {
        long id = loss.get(ValueLayout.JAVA_LONG_UNALIGNED, offset);
        CudnnObject object = id == 0 ? null : graphs.find(id);
        Kind kind = offset == HwsDnnCtcLoss.CTC_LOSS_DESC_OFFSET ? Kind.CTC : Kind.TENSOR;
        if (id != 0 && (object == null || object.older() != kind)) {
            call.fatal("a descriptor must have been made: kind=" + kind + " id=" + id);
        }
        return object;
    }

    /** Checks the device memory of a loss whose descriptors are checked. Ends the call if it is wrong. */
    static boolean checkMemory(Call call, CudnnGraphs graphs, MemorySegment loss, long batch) {
        return checkTensor(call, graphs, loss, HwsDnnCtcLoss.PROBS_OFFSET, HwsDnnCtcLoss.PROBS_DESC_OFFSET, false)
            && checkTensor(call, graphs, loss, HwsDnnCtcLoss.GRADIENTS_OFFSET, HwsDnnCtcLoss.GRADIENTS_DESC_OFFSET,
                true)
            && call.checkDevice(number(loss, HwsDnnCtcLoss.COSTS_OFFSET), batch * Float.BYTES)
            && (number(loss, HwsDnnCtcLoss.WORKSPACE_BYTES_OFFSET) == 0
                || call.checkDevice(number(loss, HwsDnnCtcLoss.WORKSPACE_OFFSET),
                    number(loss, HwsDnnCtcLoss.WORKSPACE_BYTES_OFFSET)));
    }

    private static boolean checkTensor(Call call, CudnnGraphs graphs, MemorySegment loss, int address, int descriptor,
        boolean isOptional) {
        long memory = number(loss, address);
        CudnnObject object = object(call, graphs, loss, descriptor);
        return isOptional && memory == 0
            || call.checkDevice(memory, object == null ? 1 : object.segment().byteSize());
    }

    private static long number(MemorySegment loss, int offset) {
        return loss.get(ValueLayout.JAVA_LONG_UNALIGNED, offset);
    }
}
