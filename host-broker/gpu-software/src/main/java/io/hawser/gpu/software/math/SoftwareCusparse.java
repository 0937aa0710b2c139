package io.hawser.gpu.software.math;

import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_EXECUTION_FAILED;
import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_INVALID_VALUE;
import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_NOT_SUPPORTED;
import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_SUCCESS;

import io.hawser.cuda.backend.CusparseBackend;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.SparseCall;
import io.hawser.cuda.backend.SparseContent;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cublas.cudaDataType_t;
import io.hawser.cuda.generated.cusparse.CusparseDriver;
import io.hawser.cuda.generated.cusparse.HwsSparseFunction;
import io.hawser.cuda.generated.cusparse.cusparseOperation_t;
import io.hawser.gpu.software.math.SparseWork.Factor;
import io.hawser.gpu.software.work.AwaitedWork;
import io.hawser.gpu.software.work.HandleStreams;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.Map;
import java.util.function.LongSupplier;

/**
 * cuSPARSE on the software GPU: products of a sparse matrix (CSR, COO) with dense ones, and conversions, in stream
 * order. Everything else returns "not supported". Session thread; the work runs on the device's threads.
 */
final class SoftwareCusparse implements CusparseBackend, CusparseDriver {
    private static final System.Logger LOG = System.getLogger(SoftwareCusparse.class.getName());
    private static final int VERSION = 12603; // of the interface, as CUDA 13.0 has it

    private final GpuBackend gpu;
    private final HandleStreams streams = new HandleStreams();
    private final Map<Long, Long> elements = new HashMap<>(); // of descriptors
    private long last;

    SoftwareCusparse(GpuBackend gpu) {
        this.gpu = gpu;
    }

    @Override
    public CusparseDriver driver() {
        return this;
    }

    @Override
    public int create(MemorySegment out) {
        streams.add(out);
        return CUSPARSE_STATUS_SUCCESS;
    }

    @Override
    public int destroy(long handle) {
        streams.remove(handle);
        return CUSPARSE_STATUS_SUCCESS;
    }

    @Override
    public long handleBytes() {
        return 0;
    }

    @Override
    public int version(MemorySegment out) {
        out.set(ValueLayout.JAVA_INT, 0, VERSION);
        return CUSPARSE_STATUS_SUCCESS;
    }

    @Override
    public int apply(long handle, int pointerMode, long stream) {
        streams.set(handle, stream);
        return CUSPARSE_STATUS_SUCCESS;
    }

    /** No function uses a description. */
    @Override
    public int describe(int type, int fillMode, int diagType, int indexBase, MemorySegment out) {
        out.set(ValueLayout.JAVA_LONG, 0, 1);
        return CUSPARSE_STATUS_SUCCESS;
    }

    @Override
    public int make(SparseContent content, MemorySegment out) {
        elements.put(++last, content.nnz());
        out.set(ValueLayout.JAVA_LONG, 0, last);
        return CUSPARSE_STATUS_SUCCESS;
    }

    @Override
    public int update(long descriptor, SparseContent content) {
        return CUSPARSE_STATUS_SUCCESS; // each call has the content
    }

    @Override
    public void destroy(int kind, long descriptor) {
        elements.remove(descriptor);
    }

    @Override
    public long elements(long descriptor) {
        return elements.getOrDefault(descriptor, -1L);
    }

    @Override
    public int makeOperation(Operation kind, MemorySegment out) {
        return CUSPARSE_STATUS_NOT_SUPPORTED;
    }

    @Override
    public void destroyOperation(Operation kind, long descriptor) {
        throw new IllegalStateException("no operation has been made");
    }

    @Override
    public int products(long operation, MemorySegment products) {
        return CUSPARSE_STATUS_NOT_SUPPORTED;
    }

    @Override
    public int zeroPivot(HandleKind kind, long handle, long info, MemorySegment position) {
        return CUSPARSE_STATUS_NOT_SUPPORTED;
    }

    @Override
    public int run(SparseCall call) {
        int status = check(call);
        if (status != CUSPARSE_STATUS_SUCCESS) {
            return status;
        }
        SparseMatrix a = new SparseMatrix(call.contentA());
        SparseMatrix c = new SparseMatrix(call.contentC());
        return switch (call.function()) {
            case HwsSparseFunction.HWS_SPARSE_SPMV, HwsSparseFunction.HWS_SPARSE_SPMM -> multiply(call, a, c);
            case HwsSparseFunction.HWS_SPARSE_SPMV_PREPROCESS, HwsSparseFunction.HWS_SPARSE_SPMM_PREPROCESS ->
                CUSPARSE_STATUS_SUCCESS; // nothing to prepare
            case HwsSparseFunction.HWS_SPARSE_SPARSE_TO_DENSE ->
                issue(call.handle(), () -> SparseWork.toDense(a, c));
            case HwsSparseFunction.HWS_SPARSE_DENSE_TO_SPARSE_CONVERT ->
                issue(call.handle(), () -> SparseWork.toSparse(a, c));
            default -> count(call, a, c);
        };
    }

    /** Whether this GPU computes a call, and the sizes of its matrices fit. */
    private static int check(SparseCall call) {
        SparseContent a = call.contentA();
        SparseContent b = call.contentB();
        SparseContent c = call.contentC();
        return switch (call.function()) {
            case HwsSparseFunction.HWS_SPARSE_SPMV, HwsSparseFunction.HWS_SPARSE_SPMV_PREPROCESS,
                HwsSparseFunction.HWS_SPARSE_SPMM, HwsSparseFunction.HWS_SPARSE_SPMM_PREPROCESS ->
                checkProduct(call, a, b, c);
            case HwsSparseFunction.HWS_SPARSE_SPARSE_TO_DENSE, HwsSparseFunction.HWS_SPARSE_DENSE_TO_SPARSE_ANALYSIS,
                HwsSparseFunction.HWS_SPARSE_DENSE_TO_SPARSE_CONVERT -> !SparseMatrix.isServed(a)
                    || !SparseMatrix.isServed(c) || a.valueType() != c.valueType() ? CUSPARSE_STATUS_NOT_SUPPORTED
                    : a.rows() != c.rows() || a.cols() != c.cols() ? CUSPARSE_STATUS_INVALID_VALUE
                    : CUSPARSE_STATUS_SUCCESS;
            default -> CUSPARSE_STATUS_NOT_SUPPORTED;
        };
    }

    private static boolean isVectors(SparseCall call) {
        return call.function() == HwsSparseFunction.HWS_SPARSE_SPMV
            || call.function() == HwsSparseFunction.HWS_SPARSE_SPMV_PREPROCESS;
    }

    private static int checkProduct(SparseCall call, SparseContent a, SparseContent b, SparseContent c) {
        int opB = isVectors(call) ? 0 : call.opB();
        if (!isOperation(call.opA()) || !isOperation(opB)) {
            return CUSPARSE_STATUS_INVALID_VALUE;
        }
        if (!SparseMatrix.isServed(a) || !SparseMatrix.isServed(b) || !SparseMatrix.isServed(c)
            || a.valueType() != b.valueType() || a.valueType() != c.valueType()
            || call.computeType() != a.valueType() || c.rows() > SparseWork.MAX_ROWS) {
            return CUSPARSE_STATUS_NOT_SUPPORTED;
        }
        long rows = call.opA() == 0 ? a.rows() : a.cols();
        long inner = call.opA() == 0 ? a.cols() : a.rows();
        boolean fits = c.rows() == rows && (opB == 0 ? b.rows() : b.cols()) == inner
            && (isVectors(call) || (opB == 0 ? b.cols() : b.rows()) == c.cols());
        return fits ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_INVALID_VALUE;
    }

    private static boolean isOperation(int operation) {
        return operation >= cusparseOperation_t.CUSPARSE_OPERATION_NON_TRANSPOSE
            && operation <= cusparseOperation_t.CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE;
    }

    private int multiply(SparseCall call, SparseMatrix a, SparseMatrix c) {
        SparseMatrix b = new SparseMatrix(call.contentB());
        boolean isVectors = isVectors(call);
        int opA = call.opA();
        int opB = isVectors ? 0 : call.opB();
        int type = call.computeType();
        // Numbers on the host may change after the call, those on the device before the product.
        Scalar alpha = new Scalar(call.alpha(), type);
        Scalar beta = new Scalar(call.beta(), type);
        long columns = isVectors ? 1 : c.cols();
        return issue(call.handle(),
            () -> SparseWork.multiply(a, opA, b, opB, c, columns, alpha.get(), beta.get(), c.rows()));
    }

    /** A factor on the host, which is read at once, or on the device. */
    private static final class Scalar {
        private final MemorySegment onDevice; // null: on the host
        private final boolean isDouble;
        private final boolean isComplex;
        private final Factor onHost;

        Scalar(MemorySegment number, int type) {
            isDouble = type == cudaDataType_t.CUDA_R_64F || type == cudaDataType_t.CUDA_C_64F;
            isComplex = type == cudaDataType_t.CUDA_C_32F || type == cudaDataType_t.CUDA_C_64F;
            boolean isOnDevice = number.byteSize() == 0;
            long bytes = (isDouble ? Double.BYTES : Float.BYTES) * (isComplex ? 2L : 1);
            // SAFETY: the worker has checked that a number of the type lies at this address.
            onDevice = isOnDevice ? number.reinterpret(bytes) : null;
            onHost = isOnDevice ? null : read(number);
        }

        private Factor read(MemorySegment number) {
            return new Factor(SparseMatrix.number(number, 0, isDouble),
                isComplex ? SparseMatrix.number(number, 1, isDouble) : 0);
        }

        Factor get() {
            return onHost != null ? onHost : read(onDevice);
        }
    }

    /** Counts elements, for which the caller waits. */
    private int count(SparseCall call, SparseMatrix dense, SparseMatrix sparse) {
        long[] count = new long[1];
        int status = await(call.handle(), () -> SparseWork.count(dense, sparse), count);
        if (status == CUSPARSE_STATUS_SUCCESS) {
            elements.put(call.c(), count[0]);
        }
        return status;
    }

    private int await(long handle, LongSupplier work, long[] result) {
        result[0] = AwaitedWork.run(gpu, streams.of(handle), "cuSPARSE", work).orElse(-1);
        return result[0] < 0 ? CUSPARSE_STATUS_EXECUTION_FAILED : CUSPARSE_STATUS_SUCCESS;
    }

    /** Issues work to a handle's stream. Wrong indices of a program end it, as a kernel would fail. */
    private int issue(long handle, Runnable work) {
        int issued = gpu.hostFunction(streams.of(handle), () -> {
            try {
                work.run();
            } catch (IndexOutOfBoundsException | ArithmeticException e) {
                LOG.log(System.Logger.Level.WARNING, "cuSPARSE: an index is wrong: {0}", e.getMessage());
            }
        });
        return issued == 0 ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_EXECUTION_FAILED;
    }

    /** Needs no buffer, but programs allocate one: some reject a size of 0. */
    @Override
    public int bufferSize(SparseCall call, MemorySegment size) {
        size.set(ValueLayout.JAVA_LONG, 0, Long.BYTES);
        return check(call);
    }

    private static MemorySegment ints(long address, long count) {
        // SAFETY: the worker has checked these elements.
        return MemorySegment.ofAddress(address).reinterpret(count * Integer.BYTES);
    }

    @Override
    public int cusparseXcoo2csr(MemorySegment handle, long cooRowInd, int nnz, int m, long csrSortedRowPtr,
        int idxBase) {
        if (nnz < 0 || m < 0 || idxBase < 0 || idxBase > 1) {
            return CUSPARSE_STATUS_INVALID_VALUE;
        }
        MemorySegment rows = ints(cooRowInd, nnz);
        MemorySegment offsets = ints(csrSortedRowPtr, m + 1L);
        return issue(handle.address(), () -> {
            int at = 0;
            for (int row = 0; row <= m; row++) { // the rows are sorted
                while (at < nnz && rows.getAtIndex(ValueLayout.JAVA_INT_UNALIGNED, at) - idxBase < row) {
                    at++;
                }
                offsets.setAtIndex(ValueLayout.JAVA_INT_UNALIGNED, row, at + idxBase);
            }
        });
    }

    @Override
    public int cusparseXcsr2coo(MemorySegment handle, long csrSortedRowPtr, int nnz, int m, long cooRowInd,
        int idxBase) {
        if (nnz < 0 || m < 0 || idxBase < 0 || idxBase > 1) {
            return CUSPARSE_STATUS_INVALID_VALUE;
        }
        MemorySegment offsets = ints(csrSortedRowPtr, m + 1L);
        MemorySegment rows = ints(cooRowInd, nnz);
        return issue(handle.address(), () -> {
            for (int row = 0; row < m; row++) {
                int end = offsets.getAtIndex(ValueLayout.JAVA_INT_UNALIGNED, row + 1) - idxBase;
                for (int at = offsets.getAtIndex(ValueLayout.JAVA_INT_UNALIGNED, row) - idxBase; at < end; at++) {
                    rows.setAtIndex(ValueLayout.JAVA_INT_UNALIGNED, at, row + idxBase);
                }
            }
        });
    }
}
