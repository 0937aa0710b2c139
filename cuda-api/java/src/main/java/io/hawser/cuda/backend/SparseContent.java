package io.hawser.cuda.backend;

import static io.hawser.cuda.generated.cusparse.cusparseFormat_t.CUSPARSE_FORMAT_BLOCKED_ELL;
import static io.hawser.cuda.generated.cusparse.cusparseFormat_t.CUSPARSE_FORMAT_BSR;
import static io.hawser.cuda.generated.cusparse.cusparseFormat_t.CUSPARSE_FORMAT_COO;
import static io.hawser.cuda.generated.cusparse.cusparseFormat_t.CUSPARSE_FORMAT_CSC;
import static io.hawser.cuda.generated.cusparse.cusparseFormat_t.CUSPARSE_FORMAT_CSR;
import static io.hawser.cuda.generated.cusparse.cusparseFormat_t.CUSPARSE_FORMAT_SLICED_ELLPACK;

import io.hawser.cuda.Sizes;
import io.hawser.cuda.generated.cusparse.HwsSparseContent;
import io.hawser.cuda.generated.cusparse.HwsSparseKind;
import io.hawser.cuda.generated.cusparse.cusparseIndexBase_t;
import io.hawser.cuda.generated.cusparse.cusparseIndexType_t;
import io.hawser.cuda.generated.cusparse.cusparseOrder_t;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * A vector or matrix of cuSPARSE's generic functions, as a guest describes it: the struct HwsSparseContent. Sizes of
 * memory saturate, so that no number of a guest makes them small. Any thread.
 *
 * @param struct the structure, in memory that does not change.
 */
public record SparseContent(MemorySegment struct) {
    private long number(long offset) {
        return struct.get(ValueLayout.JAVA_LONG_UNALIGNED, offset);
    }

    private int small(long offset) {
        return struct.get(ValueLayout.JAVA_INT_UNALIGNED, offset);
    }

    /** The number of the worker's object, which has state; 0 for none. */
    public long id() {
        return number(HwsSparseContent.ID_OFFSET);
    }

    /** Of HwsSparseKind. */
    public int kind() {
        return small(HwsSparseContent.KIND_OFFSET);
    }

    /** Of cusparseFormat_t. */
    public int format() {
        return small(HwsSparseContent.FORMAT_OFFSET);
    }

    /** Rows; the size of a vector; rows of blocks in BSR. */
    public long rows() {
        return number(HwsSparseContent.ROWS_OFFSET);
    }

    /** Columns; columns of blocks in BSR. */
    public long cols() {
        return number(HwsSparseContent.COLS_OFFSET);
    }

    /** Elements that are present; blocks in BSR. */
    public long nnz() {
        return number(HwsSparseContent.NNZ_OFFSET);
    }

    /** Leading dimension; side or rows of a block; values of Sliced-ELL. */
    public long extent() {
        return number(HwsSparseContent.EXTENT_OFFSET);
    }

    /** Columns of Blocked-ELL or of a block; rows of a slice. */
    public long extent2() {
        return number(HwsSparseContent.EXTENT2_OFFSET);
    }

    /** Address of offsets; of rows in COO. */
    public long offsets() {
        return number(HwsSparseContent.OFFSETS_OFFSET);
    }

    /** Address of indices. */
    public long indices() {
        return number(HwsSparseContent.INDICES_OFFSET);
    }

    /** Address of values. */
    public long values() {
        return number(HwsSparseContent.VALUES_OFFSET);
    }

    /** Elements between batches: of values, of offsets in CSR and BSR. */
    public long stride() {
        return number(HwsSparseContent.STRIDE_OFFSET);
    }

    /** Elements between batches of columns. */
    public long stride2() {
        return number(HwsSparseContent.STRIDE2_OFFSET);
    }

    /** Elements between batches of values in BSR. */
    public long stride3() {
        return number(HwsSparseContent.STRIDE3_OFFSET);
    }

    /** Number of batches, from 1. */
    public int batches() {
        return small(HwsSparseContent.BATCHES_OFFSET);
    }

    /** Of cudaDataType. */
    public int valueType() {
        return small(HwsSparseContent.VALUE_TYPE_OFFSET);
    }

    /** Of cusparseIndexType_t. */
    public int offsetType() {
        return small(HwsSparseContent.OFFSET_TYPE_OFFSET);
    }

    /** Of cusparseIndexType_t. */
    public int indexType() {
        return small(HwsSparseContent.INDEX_TYPE_OFFSET);
    }

    /** 0 or 1. */
    public int indexBase() {
        return small(HwsSparseContent.INDEX_BASE_OFFSET);
    }

    /** Of cusparseOrder_t. */
    public int order() {
        return small(HwsSparseContent.ORDER_OFFSET);
    }

    /** 1 more than cusparseFillMode_t; 0 for none. */
    public int fillMode() {
        return small(HwsSparseContent.FILL_MODE_OFFSET);
    }

    /** 1 more than cusparseDiagType_t; 0 for none. */
    public int diagType() {
        return small(HwsSparseContent.DIAG_TYPE_OFFSET);
    }

    /** Whether the guest library could have made the content. */
    public boolean isWhole() {
        boolean isCounted = rows() >= 0 && cols() >= 0 && nnz() >= 0 && extent() >= 0 && extent2() >= 0
            && stride() >= 0 && stride2() >= 0 && stride3() >= 0 && batches() >= 1
            && Sizes.element(valueType()) > 0 && isUpTo(fillMode(), 2) && isUpTo(diagType(), 2);
        return isCounted && switch (kind()) {
            case HwsSparseKind.HWS_SPARSE_DN_VEC -> true;
            case HwsSparseKind.HWS_SPARSE_SP_VEC -> isIndex(indexType()) && isBase();
            case HwsSparseKind.HWS_SPARSE_DN_MAT -> isOrder();
            case HwsSparseKind.HWS_SPARSE_SP_MAT -> isIndex(indexType()) && isIndex(offsetType()) && isBase()
                && switch (format()) {
                    case CUSPARSE_FORMAT_CSR, CUSPARSE_FORMAT_CSC, CUSPARSE_FORMAT_COO -> true;
                    case CUSPARSE_FORMAT_BLOCKED_ELL -> extent() > 0;
                    case CUSPARSE_FORMAT_SLICED_ELLPACK -> extent2() > 0;
                    case CUSPARSE_FORMAT_BSR -> extent() > 0 && extent2() > 0 && isOrder();
                    default -> false;
                };
            default -> false;
        };
    }

    private static boolean isUpTo(int value, int most) {
        return value >= 0 && value <= most;
    }

    private static boolean isIndex(int type) {
        return type >= cusparseIndexType_t.CUSPARSE_INDEX_16U && type <= cusparseIndexType_t.CUSPARSE_INDEX_64I;
    }

    private boolean isBase() {
        return isUpTo(indexBase(), cusparseIndexBase_t.CUSPARSE_INDEX_BASE_ONE);
    }

    private boolean isOrder() {
        return order() == cusparseOrder_t.CUSPARSE_ORDER_COL || order() == cusparseOrder_t.CUSPARSE_ORDER_ROW;
    }

    /** Bytes of an index; 0 for an unknown type. */
    public static long indexBytes(int type) {
        return switch (type) {
            case cusparseIndexType_t.CUSPARSE_INDEX_16U -> Short.BYTES;
            case cusparseIndexType_t.CUSPARSE_INDEX_32I -> Integer.BYTES;
            case cusparseIndexType_t.CUSPARSE_INDEX_64I -> Long.BYTES;
            default -> 0;
        };
    }

    /** Bytes of one batch after the other, with {@code stride} elements from one to the next. */
    private long batched(long count, long stride, long elementBytes) {
        return Sizes.box(Sizes.multiply(stride, elementBytes), batches(), Sizes.multiply(count, elementBytes));
    }

    private static long parts(long count, long size) {
        return size == 0 ? 0 : count / size + (count % size == 0 ? 0 : 1);
    }

    /** Bytes of memory at {@link #offsets}. */
    public long offsetBytes() {
        long bytes = indexBytes(offsetType());
        return kind() != HwsSparseKind.HWS_SPARSE_SP_MAT ? 0 : switch (format()) {
            case CUSPARSE_FORMAT_CSR, CUSPARSE_FORMAT_BSR -> batched(Sizes.add(rows(), 1), stride(), bytes);
            case CUSPARSE_FORMAT_CSC -> batched(Sizes.add(cols(), 1), stride(), bytes);
            case CUSPARSE_FORMAT_COO -> batched(nnz(), stride(), bytes);
            case CUSPARSE_FORMAT_SLICED_ELLPACK -> Sizes.multiply(Sizes.add(parts(rows(), extent2()), 1), bytes);
            default -> 0;
        };
    }

    /** Bytes of memory at {@link #indices}. */
    public long indexBytes() {
        long bytes = indexBytes(indexType());
        return switch (kind()) {
            case HwsSparseKind.HWS_SPARSE_SP_VEC -> Sizes.multiply(nnz(), bytes);
            case HwsSparseKind.HWS_SPARSE_SP_MAT -> switch (format()) {
                case CUSPARSE_FORMAT_COO -> batched(nnz(), stride(), bytes);
                case CUSPARSE_FORMAT_BLOCKED_ELL ->
                    Sizes.multiply(Sizes.multiply(parts(rows(), extent()), parts(extent2(), extent())), bytes);
                case CUSPARSE_FORMAT_SLICED_ELLPACK -> Sizes.multiply(extent(), bytes);
                default -> batched(nnz(), stride2(), bytes);
            };
            default -> 0;
        };
    }

    /** Bytes of memory at {@link #values}. */
    public long valueBytes() {
        long bytes = Sizes.element(valueType());
        return switch (kind()) {
            case HwsSparseKind.HWS_SPARSE_DN_VEC -> Sizes.multiply(rows(), bytes);
            case HwsSparseKind.HWS_SPARSE_SP_VEC -> Sizes.multiply(nnz(), bytes);
            case HwsSparseKind.HWS_SPARSE_DN_MAT -> {
                boolean byColumns = order() == cusparseOrder_t.CUSPARSE_ORDER_COL;
                long lines = byColumns ? cols() : rows();
                long length = byColumns ? rows() : cols();
                long one = Sizes.box(Sizes.multiply(extent(), bytes), lines, Sizes.multiply(length, bytes));
                yield Sizes.box(Sizes.multiply(stride(), bytes), batches(), one);
            }
            case HwsSparseKind.HWS_SPARSE_SP_MAT -> switch (format()) {
                case CUSPARSE_FORMAT_COO -> batched(nnz(), stride(), bytes);
                case CUSPARSE_FORMAT_BSR ->
                    batched(Sizes.multiply(Sizes.multiply(nnz(), extent()), extent2()), stride3(), bytes);
                case CUSPARSE_FORMAT_BLOCKED_ELL -> Sizes.multiply(Sizes.multiply(Sizes.multiply(
                    parts(rows(), extent()), extent()), extent2()), bytes);
                case CUSPARSE_FORMAT_SLICED_ELLPACK -> Sizes.multiply(extent(), bytes);
                default -> batched(nnz(), stride2(), bytes);
            };
            default -> 0;
        };
    }
}
