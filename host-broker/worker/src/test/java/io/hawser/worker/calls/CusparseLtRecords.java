package io.hawser.worker.calls;

import io.hawser.cuda.generated.cublas.HwsScalar;
import io.hawser.cuda.generated.cublas.cudaDataType_t;
import io.hawser.cuda.generated.cusparse.cusparseOrder_t;
import io.hawser.cuda.generated.cusparselt.CusparseLtOpcodes;
import io.hawser.cuda.generated.cusparselt.HwsSltAlgorithm;
import io.hawser.cuda.generated.cusparselt.HwsSltMatmul;
import io.hawser.cuda.generated.cusparselt.HwsSltMatrix;
import io.hawser.cuda.generated.cusparselt.HwsSltOwner;
import io.hawser.cuda.generated.cusparselt.HwsSltTarget;
import io.hawser.cuda.generated.cusparselt.HwsSltWork;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.fixture.Guest;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** Records of cuSPARSELt for tests. */
final class CusparseLtRecords {
    static final int N = 32;

    private static final int CONTENT_BYTES = HwsSltMatmul.BYTES + 4 * HwsSltMatrix.BYTES + HwsSltAlgorithm.BYTES;

    private CusparseLtRecords() {
    }

    /** A record with the content of a product of square matrices of 16-bit floats, which a test changes. */
    abstract static class Content<T extends Content<T>> implements Consumer<RecordWriter> {
        private final List<Consumer<RecordWriter>> changes = new ArrayList<>();
        private final int start;

        Content(int start) {
            this.start = start;
        }

        abstract T self();

        T with(Consumer<RecordWriter> change) {
            changes.add(change);
            return self();
        }

        T matmul(int offset, int value) {
            return with(out -> out.i32(start + offset, value));
        }

        T address(int offset, long value) {
            return with(out -> out.i64(start + offset, value));
        }

        private int matrix(int which) {
            return start + HwsSltMatmul.BYTES + which * HwsSltMatrix.BYTES;
        }

        T matrix(int which, int offset, int value) {
            return with(out -> out.i32(matrix(which) + offset, value));
        }

        T matrix(int which, int offset, long value) {
            return with(out -> out.i64(matrix(which) + offset, value));
        }

        T algorithm(int offset, int value) {
            return with(out -> out.i32(start + CONTENT_BYTES - HwsSltAlgorithm.BYTES + offset, value));
        }

        void write(RecordWriter out) {
            out.i32(start + HwsSltMatmul.COMPUTE_TYPE_OFFSET, 2);
            for (int i = 0; i < 4; i++) {
                out.i64(matrix(i) + HwsSltMatrix.ROWS_OFFSET, N);
                out.i64(matrix(i) + HwsSltMatrix.COLS_OFFSET, N);
                out.i64(matrix(i) + HwsSltMatrix.LD_OFFSET, N);
                out.i32(matrix(i) + HwsSltMatrix.TYPE_OFFSET, cudaDataType_t.CUDA_R_16F);
                out.i32(matrix(i) + HwsSltMatrix.ORDER_OFFSET, cusparseOrder_t.CUSPARSE_ORDER_COL);
                out.i32(matrix(i) + HwsSltMatrix.NUM_BATCHES_OFFSET, 1);
            }
            out.i32(matrix(0) + HwsSltMatrix.IS_STRUCTURED_OFFSET, 1);
            changes.forEach(change -> change.accept(out));
        }
    }

    /** A question. */
    static final class Question extends Content<Question> {
        private static final int START = HwsSltOwner.BYTES + Long.BYTES;

        private final long handle;
        private final int stage;

        Question(long handle, int stage) {
            super(START);
            this.handle = handle;
            this.stage = stage;
        }

        @Override
        Question self() {
            return this;
        }

        @Override
        public void accept(RecordWriter out) {
            out.fixed(START + CONTENT_BYTES);
            out.i64(0, handle);
            out.i32(HwsSltOwner.BYTES, stage);
            write(out);
        }

        Guest.Received ask(Guest guest) throws IOException {
            return guest.call(CusparseLtOpcodes.hwsSltMake, this);
        }
    }

    /** A product, or a search for its algorithm. */
    static final class Product extends Content<Product> {
        static final int SCALARS = HwsSltTarget.BYTES + CONTENT_BYTES;
        static final int MATRICES = SCALARS + 2 * HwsScalar.BYTES;

        private final long handle;
        final long[] addresses;
        long workspace;
        int streamCount;
        int scalarBytes = Float.BYTES;

        Product(long handle, long matrix) {
            super(HwsSltTarget.BYTES);
            this.handle = handle;
            addresses = new long[] {matrix, matrix, matrix, matrix};
        }

        Product at(int which, long address) {
            addresses[which] = address;
            return this;
        }

        Product scalar(int which, long address) {
            with(out -> {
                out.i32(SCALARS + which * HwsScalar.BYTES + HwsScalar.ON_DEVICE_OFFSET, 1);
                out.i64(SCALARS + which * HwsScalar.BYTES + HwsScalar.ADDRESS_OFFSET, address);
            });
            return this;
        }

        @Override
        Product self() {
            return this;
        }

        @Override
        public void accept(RecordWriter out) {
            out.fixed(MATRICES + 4 * Long.BYTES);
            out.i64(HwsSltTarget.HANDLE_OFFSET, handle);
            out.i64(HwsSltTarget.WORKSPACE_OFFSET, workspace);
            out.i32(HwsSltTarget.STREAM_COUNT_OFFSET, streamCount);
            for (int i = 0; i < 2; i++) {
                out.i32(SCALARS + i * HwsScalar.BYTES + HwsScalar.VALUE_BYTES_OFFSET, scalarBytes);
                out.i32(SCALARS + i * HwsScalar.BYTES + HwsScalar.VALUE_OFFSET, Float.floatToRawIntBits(1.5f + i));
            }
            for (int i = 0; i < 4; i++) {
                out.i64(MATRICES + Long.BYTES * i, addresses[i]);
            }
            write(out);
        }

        int call(Guest guest) throws IOException {
            return guest.replyTo(guest.send(CusparseLtOpcodes.hwsSltMatmul, Guest.REPLY | Guest.CREDITED, this))
                .status();
        }

        Guest.Received search(Guest guest) throws IOException {
            return guest.replyTo(guest.send(CusparseLtOpcodes.hwsSltSearch, Guest.REPLY | Guest.CREDITED, this));
        }
    }

    /** Work on the matrix with structure. */
    static final class Work extends Content<Work> {
        private static final int WORK = HwsSltTarget.BYTES + CONTENT_BYTES;

        private final long handle;
        private final int function;
        long input;
        long output;
        long buffer;

        Work(long handle, int function, long memory) {
            super(HwsSltTarget.BYTES);
            this.handle = handle;
            this.function = function;
            input = memory;
            output = memory;
        }

        @Override
        Work self() {
            return this;
        }

        @Override
        public void accept(RecordWriter out) {
            out.fixed(WORK + HwsSltWork.BYTES + 3 * Long.BYTES);
            out.i64(HwsSltTarget.HANDLE_OFFSET, handle);
            out.i32(WORK + HwsSltWork.FUNCTION_OFFSET, function);
            out.i32(WORK + HwsSltWork.IS_SPARSE_A_OFFSET, 1);
            out.i32(WORK + HwsSltWork.PRUNE_ALG_OFFSET, 1);
            out.i64(WORK + HwsSltWork.BYTES, input);
            out.i64(WORK + HwsSltWork.BYTES + Long.BYTES, output);
            out.i64(WORK + HwsSltWork.BYTES + 2 * Long.BYTES, buffer);
            write(out);
        }

        int call(Guest guest) throws IOException {
            return guest.replyTo(guest.send(CusparseLtOpcodes.hwsSltChange, Guest.REPLY | Guest.CREDITED, this))
                .status();
        }
    }
}
