package io.hawser.worker.calls;

import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_ALLOC_FAILED;
import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_NOT_SUPPORTED;
import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_SUCCESS;

import io.hawser.cuda.Sizes;
import io.hawser.cuda.backend.CusparseBackend;
import io.hawser.cuda.backend.CusparseBackend.Operation;
import io.hawser.cuda.backend.SparseCall;
import io.hawser.cuda.backend.SparseContent;
import io.hawser.cuda.generated.cublas.cudaDataType_t;
import io.hawser.cuda.generated.cusparse.DescriptorManualCalls;
import io.hawser.cuda.generated.cusparse.GenericManualCalls;
import io.hawser.cuda.generated.cusparse.GenericReplies;
import io.hawser.cuda.generated.cusparse.HwsSparseBuffer;
import io.hawser.cuda.generated.cusparse.HwsSparseKind;
import io.hawser.cuda.generated.cusparse.HwsSparseOperation;
import io.hawser.cuda.generated.cusparse.HwsSparseResult;
import io.hawser.cuda.generated.cusparse.cusparseSpSVUpdate_t;
import io.hawser.worker.session.Call;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.Map;

/**
 * The generic functions of cuSPARSE. A call carries the contents of its descriptors. The library's descriptors exist
 * for the time of the call, except for those of matrices and operations that have state. Session thread.
 */
final class CusparseGeneric implements DescriptorManualCalls<Call>, GenericManualCalls<Call> {
    /** Objects that a session has not destroyed; a guest chooses their number. */
    static final int MAX_OBJECTS = 65_536;

    private static final int BUFFERS = 3;
    private static final int VALUE_BYTES = 16;

    private final CusparseCalls owner;
    private final CusparseBackend cusparse; // null: missing
    private final Map<Long, CusparseObject> objects = new HashMap<>();
    private final long[] temporary = new long[BUFFERS]; // descriptors of the call in service
    private final int[] temporaryKinds = new int[BUFFERS];
    private int temporaries;

    CusparseGeneric(CusparseCalls owner, CusparseBackend cusparse) {
        this.owner = owner;
        this.cusparse = cusparse;
    }

    /** Number of objects with state. */
    int size() {
        return objects.size();
    }

    /** A guest ends each descriptor that it may have sent, also one whose first call has failed. */
    @Override
    public void hwsSparseDrop(Call call, long id) {
        CusparseObject object = objects.remove(id);
        if (object != null) {
            object.destroy(cusparse);
        }
        call.finish(CUSPARSE_STATUS_SUCCESS);
    }

    @Override
    public void hwsSparseRun(Call call, MemorySegment handle, MemorySegment operation, MemorySegment alpha,
        MemorySegment beta, MemorySegment a, MemorySegment b, MemorySegment c, MemorySegment buffer) {
        CusparseFunction function = function(call, operation);
        if (function != null && !function.runs()) {
            call.fatal("a caller must wait for the function: function=" + function);
        }
        SparseCall made = function == null ? null
            : prepare(call, function, handle, operation, alpha, beta, a, b, c, buffer);
        if (made != null) {
            if (function == CusparseFunction.SPVV && made.alpha().byteSize() != 0) {
                call.fatal("a caller must wait for a number on the host");
            } else {
                call.finish(cusparse.run(made));
            }
        }
        destroyTemporaries();
    }

    @Override
    public void hwsSparseBufferSize(Call call, MemorySegment handle, MemorySegment operation, MemorySegment alpha,
        MemorySegment beta, MemorySegment a, MemorySegment b, MemorySegment c) {
        CusparseFunction function = function(call, operation);
        SparseCall made = function == null ? null
            : prepare(call, function, handle, operation, alpha, beta, a, b, c);
        if (made != null) {
            MemorySegment size = call.scratch(Long.BYTES);
            int status = cusparse.bufferSize(made, size);
            if (status == CUSPARSE_STATUS_SUCCESS) {
                GenericReplies.hwsSparseBufferSize(call.reply(), size.get(ValueLayout.JAVA_LONG, 0));
            }
            call.finish(status);
        }
        destroyTemporaries();
    }

    @Override
    public void hwsSparseAnalyse(Call call, MemorySegment handle, MemorySegment operation, MemorySegment alpha,
        MemorySegment beta, MemorySegment a, MemorySegment b, MemorySegment c, MemorySegment buffer,
        MemorySegment buffer2, MemorySegment buffer3) {
        CusparseFunction function = function(call, operation);
        if (function == CusparseFunction.SPGEMM_PRODUCTS) {
            products(call, operation);
            return;
        }
        if (function != null && !function.answers()) {
            call.fatal("a function must return something: function=" + function);
        }
        SparseCall made = function == null ? null
            : prepare(call, function, handle, operation, alpha, beta, a, b, c, buffer, buffer2, buffer3);
        if (made != null) {
            answer(call, function, made);
        }
        destroyTemporaries();
    }

    private void answer(Call call, CusparseFunction function, SparseCall made) {
        int status = cusparse.run(made);
        MemorySegment result = call.scratch(HwsSparseResult.BYTES);
        result.set(ValueLayout.JAVA_LONG, HwsSparseResult.NNZ_OFFSET, -1);
        if (status == CUSPARSE_STATUS_SUCCESS) {
            MemorySegment.copy(made.sizes(), 0, result, HwsSparseResult.BYTES_OFFSET, made.sizes().byteSize());
            CusparseObject matrix = objects.get(made.contentC().id());
            if (function.makesElements() && matrix != null) {
                long count = cusparse.elements(made.c());
                if (count >= 0) {
                    matrix.setElements(count);
                    result.set(ValueLayout.JAVA_LONG, HwsSparseResult.NNZ_OFFSET, count);
                }
            }
            if (function == CusparseFunction.SPSV_ANALYSIS || function == CusparseFunction.SPSM_ANALYSIS) {
                objects.get(operationId(made.operation())).setMatrix(made.contentA());
            }
            if (function == CusparseFunction.SPVV) {
                // The library has copied a number on the host before it returns.
                MemorySegment.copy(made.alpha(), 0, result, HwsSparseResult.VALUE_OFFSET, made.alpha().byteSize());
            }
            GenericReplies.hwsSparseAnalyse(call.reply(), result);
        }
        call.finish(status);
    }

    private void products(Call call, MemorySegment operation) {
        if (cusparse == null) {
            call.fail(CUSPARSE_STATUS_NOT_SUPPORTED);
            return;
        }
        long state = state(call, Operation.SPGEMM, operationId(operation));
        if (call.isRejected()) {
            return;
        }
        MemorySegment count = call.scratch(Long.BYTES);
        MemorySegment result = call.scratch(HwsSparseResult.BYTES);
        int status = cusparse.products(state, count);
        if (status == CUSPARSE_STATUS_SUCCESS) {
            result.set(ValueLayout.JAVA_LONG, HwsSparseResult.PRODUCTS_OFFSET, count.get(ValueLayout.JAVA_LONG, 0));
            GenericReplies.hwsSparseAnalyse(call.reply(), result);
        }
        call.finish(status);
    }

    private static CusparseFunction function(Call call, MemorySegment operation) {
        int number = operation.get(ValueLayout.JAVA_INT_UNALIGNED, HwsSparseOperation.FUNCTION_OFFSET);
        CusparseFunction function = CusparseFunction.of(number);
        if (function == null) {
            call.fatal("a function must be known: function=" + number);
        }
        return function;
    }

    private static long operationId(MemorySegment operation) {
        return operation.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsSparseOperation.STATE_OFFSET);
    }

    /** The call with the library's descriptors and checked memory; null when it has ended. */
    private SparseCall prepare(Call call, CusparseFunction function, MemorySegment handle, MemorySegment operation,
        MemorySegment alpha, MemorySegment beta, MemorySegment a, MemorySegment b, MemorySegment c,
        MemorySegment... buffers) {
        if (call.isRejected()) {
            return null;
        }
        long made = owner.handle(call, handle);
        SparseContent[] contents = {new SparseContent(a), new SparseContent(b), new SparseContent(c)};
        long[] descriptors = new long[contents.length];
        for (int i = 0; i < contents.length && !call.isRejected(); i++) {
            descriptors[i] = descriptor(call, contents[i], function.kind(i));
        }
        if (call.isRejected()) {
            return null;
        }
        long state = function.operation() == null ? 0 : state(call, function.operation(), operationId(operation));
        MemorySegment factor = function == CusparseFunction.SPVV && buffers.length == 0
            ? call.scratch(VALUE_BYTES) // a size does not depend on the place of the result
            : number(call, function, function.hasAlpha(), operation, alpha, contents[0]);
        MemorySegment summand = number(call, function, function.hasBeta(), operation, beta, contents[0]);
        long[] addresses = new long[BUFFERS];
        MemorySegment sizes = call.scratch(BUFFERS * (long) Long.BYTES);
        for (int i = 0; i < buffers.length && !call.isRejected(); i++) {
            addresses[i] = buffer(call, function, operation, buffers[i], sizes, i);
        }
        return call.isRejected() ? null : new SparseCall(made, operation, factor, summand, descriptors[0],
            descriptors[1], descriptors[2], contents[0], contents[1], contents[2], state, addresses, sizes);
    }

    /** A buffer's address. It has the stated size, or one that the library alone knows: then its start is checked. */
    private long buffer(Call call, CusparseFunction function, MemorySegment operation, MemorySegment buffer,
        MemorySegment sizes, int index) {
        long address = buffer.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsSparseBuffer.ADDRESS_OFFSET);
        long bytes = buffer.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsSparseBuffer.BYTES_OFFSET);
        sizes.setAtIndex(ValueLayout.JAVA_LONG, index, bytes);
        long needed = function.isUpdate() ? updateBytes(operation) : bytes == 0 ? 1 : bytes;
        if (address != 0) {
            call.checkDevice(address, needed);
        }
        return address;
    }

    /** The new values of a matrix whose analysis an operation has; more than exist before an analysis. */
    private long updateBytes(MemorySegment operation) {
        SparseContent matrix = objects.get(operationId(operation)).content();
        if (matrix.kind() == HwsSparseKind.HWS_SPARSE_NONE) {
            return Sizes.MOST;
        }
        boolean isDiagonal = operation.get(ValueLayout.JAVA_INT_UNALIGNED, HwsSparseOperation.ALG_OFFSET)
            == cusparseSpSVUpdate_t.CUSPARSE_SPSV_UPDATE_DIAGONAL;
        return Sizes.multiply(isDiagonal ? matrix.rows() : matrix.nnz(), Sizes.element(matrix.valueType()));
    }

    private MemorySegment number(Call call, CusparseFunction function, boolean has, MemorySegment operation,
        MemorySegment content, SparseContent first) {
        if (!has || call.isRejected()) {
            return MemorySegment.NULL;
        }
        int type = function.isOfVectors() ? computeType(first.valueType())
            : operation.get(ValueLayout.JAVA_INT_UNALIGNED, HwsSparseOperation.COMPUTE_TYPE_OFFSET);
        MemorySegment number = LibraryNumbers.of(call, content, Sizes.element(type), owner.isDeviceMode());
        return function != CusparseFunction.SPVV || number.byteSize() == 0 ? number : call.scratch(VALUE_BYTES);
    }

    /** As NVIDIA documents: 16-bit numbers are computed in 32 bits. */
    private static int computeType(int valueType) {
        return switch (valueType) {
            case cudaDataType_t.CUDA_R_16F, cudaDataType_t.CUDA_R_16BF -> cudaDataType_t.CUDA_R_32F;
            case cudaDataType_t.CUDA_C_16F, cudaDataType_t.CUDA_C_16BF -> cudaDataType_t.CUDA_C_32F;
            default -> valueType;
        };
    }

    /** The library's descriptor of an operation, made at its first use. */
    private long state(Call call, Operation kind, long id) {
        CusparseObject object = objects.get(id);
        if (object != null || id <= 0) {
            if (object == null || object.operation() != kind) {
                call.fatal("a descriptor of an operation must have its kind: id=" + id + " kind=" + kind);
                return 0;
            }
            return object.made();
        }
        MemorySegment out = call.scratch(Long.BYTES);
        int status = objects.size() >= MAX_OBJECTS ? CUSPARSE_STATUS_ALLOC_FAILED : cusparse.makeOperation(kind, out);
        if (status != CUSPARSE_STATUS_SUCCESS) {
            call.fail(status);
            return 0;
        }
        long made = out.get(ValueLayout.JAVA_LONG, 0);
        objects.put(id, CusparseObject.ofOperation(kind, made));
        return made;
    }

    /** The library's descriptor of a content whose memory is the session's; 0 where the function has none. */
    private long descriptor(Call call, SparseContent content, int kind) {
        if (content.kind() != kind || kind != HwsSparseKind.HWS_SPARSE_NONE && !content.isWhole()) {
            call.fatal("a content must be whole and of the function's kind: kind=" + content.kind() + " wanted="
                + kind);
            return 0;
        }
        if (kind == HwsSparseKind.HWS_SPARSE_NONE || !check(call, content.offsets(), content.offsetBytes())
            || !check(call, content.indices(), content.indexBytes())
            || !check(call, content.values(), content.valueBytes())) {
            return 0;
        }
        CusparseObject object = content.id() == 0 ? null : objects.get(content.id());
        return object == null ? make(call, content) : known(call, object, content);
    }

    /** A program may leave an address open until it knows how much memory it needs. */
    private static boolean check(Call call, long address, long bytes) {
        return address == 0 || call.checkDevice(address, bytes);
    }

    private long known(Call call, CusparseObject object, SparseContent content) {
        if (object.operation() != null || !object.hasShapeOf(content)) {
            call.fatal("the shape of a matrix must not change: id=" + content.id());
            return 0;
        }
        int status = object.update(cusparse, content);
        if (status != CUSPARSE_STATUS_SUCCESS) {
            call.fail(status);
        }
        return object.made();
    }

    private long make(Call call, SparseContent content) {
        boolean isKept = content.id() != 0;
        if (isKept && content.kind() != HwsSparseKind.HWS_SPARSE_SP_MAT || content.id() < 0) {
            call.fatal("only sparse matrices have objects: id=" + content.id() + " kind=" + content.kind());
            return 0;
        }
        if (isKept && objects.size() >= MAX_OBJECTS) {
            call.fail(CUSPARSE_STATUS_ALLOC_FAILED);
            return 0;
        }
        MemorySegment out = call.scratch(Long.BYTES);
        int status = cusparse.make(content, out);
        if (status != CUSPARSE_STATUS_SUCCESS) {
            call.fail(status);
            return 0;
        }
        long made = out.get(ValueLayout.JAVA_LONG, 0);
        if (isKept) {
            objects.put(content.id(), CusparseObject.ofMatrix(made, content));
        } else {
            temporary[temporaries] = made;
            temporaryKinds[temporaries++] = content.kind();
        }
        return made;
    }

    private void destroyTemporaries() {
        while (temporaries > 0) {
            temporaries--;
            cusparse.destroy(temporaryKinds[temporaries], temporary[temporaries]);
        }
    }
}
