package io.hawser.worker.calls;

import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_ALLOC_FAILED;
import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_INVALID_VALUE;
import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_NOT_INITIALIZED;
import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_NOT_SUPPORTED;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cusparselt.CusparseLtOpcodes;
import io.hawser.cuda.generated.cusparselt.HwsSltAlgorithm;
import io.hawser.cuda.generated.cusparselt.HwsSltFacts;
import io.hawser.cuda.generated.cusparselt.HwsSltFunction;
import io.hawser.cuda.generated.cusparselt.HwsSltMatmul;
import io.hawser.cuda.generated.cusparselt.HwsSltMatrix;
import io.hawser.cuda.generated.cusparselt.HwsSltStage;
import io.hawser.cuda.generated.cusparselt.HwsSltTarget;
import io.hawser.worker.calls.CusparseLtRecords.Content;
import io.hawser.worker.calls.CusparseLtRecords.Product;
import io.hawser.worker.calls.CusparseLtRecords.Question;
import io.hawser.worker.calls.CusparseLtRecords.Work;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.HeapCusparseLt;
import io.hawser.worker.fixture.HeapMath;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class CusparseLtCallsTest {
    private static final int N = CusparseLtRecords.N;
    private static final int DENSE_BYTES = N * N * Short.BYTES;

    private static long create(Guest guest) throws IOException {
        long handle = guest.newId(HandleKind.CUSPARSELT);
        assertEquals(0, guest.call(CusparseLtOpcodes.hwsSltCreate, handle).status());
        return handle;
    }

    @Test
    void shouldOpenLibraryAtTheFirstCallAndDropObjectsWithTheirHandle() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long matrix = guest.allocate(DENSE_BYTES);
            assertNull(HeapMath.structuredOf(rig.gpu()));
            long handle = create(guest);
            long other = create(guest);
            HeapCusparseLt library = HeapMath.structuredOf(rig.gpu());
            assertEquals(2, library.handles());
            assertEquals(0, new Product(handle, matrix).call(guest));
            assertEquals(0, new Product(other, matrix).call(guest));
            assertEquals(2, library.live());
            guest.send(CusparseLtOpcodes.hwsSltDestroy, 0, handle);
            assertEquals(CUSPARSE_STATUS_NOT_INITIALIZED, new Product(handle, matrix).call(guest));
            assertEquals(1, library.handles());
            assertEquals(1, library.live());
            assertEquals(801, guest.call(CusparseLtOpcodes.hwsSltVersion, out -> {}).i32(0));
        }
    }

    @Test
    void shouldGiveTheLibraryWholeContentsOnce() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long handle = create(guest);
            long matrix = guest.allocate(2 * DENSE_BYTES);
            int bias = HwsSltMatmul.BIAS_OFFSET;
            for (int i = 0; i < 3; i++) {
                Product product = new Product(handle, matrix);
                product.workspace = matrix;
                product.address(bias, matrix + 256).matrix(2, HwsSltMatrix.NUM_BATCHES_OFFSET, 2)
                    .algorithm(HwsSltAlgorithm.IS_SET_OFFSET, 1).algorithm(HwsSltAlgorithm.VALUES_OFFSET, 4);
                assertEquals(0, product.call(guest));
            }
            HeapCusparseLt library = HeapMath.structuredOf(rig.gpu());
            assertEquals(1, library.made());
            assertEquals(3, library.runs().size());
            assertEquals(HwsSltStage.HWS_SLT_PLAN, library.content().stage());
            assertEquals(2, library.content().matmul().get(ValueLayout.JAVA_INT,
                HwsSltMatmul.COMPUTE_TYPE_OFFSET));
            assertEquals(2, library.content().matrices()[2].get(ValueLayout.JAVA_INT,
                HwsSltMatrix.NUM_BATCHES_OFFSET));
            assertEquals(4, library.content().algorithm().get(ValueLayout.JAVA_INT,
                HwsSltAlgorithm.VALUES_OFFSET));
            assertEquals(1.5f, library.alpha());
            assertEquals(1, library.streams().size(), "the default stream");
            // A plan depends on its addresses.
            assertEquals(0, new Product(handle, matrix).address(bias, matrix + 512).call(guest));
            assertEquals(2, library.made());
            for (int i = 0; i < CusparseLtCalls.MAX_CONTENTS + 5; i++) {
                assertEquals(0, new Product(handle, matrix).matrix(0, HwsSltMatrix.ALIGNMENT_OFFSET, i)
                    .call(guest));
            }
            assertEquals(CusparseLtCalls.MAX_CONTENTS, library.live());
        }
    }

    @Test
    void shouldTellFactsAndKeepPlansOnly() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long handle = create(guest);
            HeapCusparseLt library = HeapMath.structuredOf(rig.gpu());
            for (int stage = 0; stage < HwsSltStage.HWS_SLT_STAGES; stage++) {
                Guest.Received facts = new Question(handle, stage).ask(guest);
                assertEquals(0, facts.status());
                assertEquals(HeapCusparseLt.COMPRESSED_BYTES, facts.i64(HwsSltFacts.COMPRESSED_BYTES_OFFSET));
                assertEquals(stage == HwsSltStage.HWS_SLT_PLAN ? 1 : 0, library.live());
            }
            assertEquals(0, new Product(handle, guest.allocate(DENSE_BYTES)).call(guest));
            assertEquals(4, library.made());
            library.fail(CUSPARSE_STATUS_NOT_SUPPORTED);
            assertEquals(CUSPARSE_STATUS_NOT_SUPPORTED,
                new Question(handle, HwsSltStage.HWS_SLT_MATRIX).ask(guest).status());
            assertEquals(1, library.live());
        }
    }

    @Test
    void shouldRefuseUnknownEnumerationsAndNegativeNumbers() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long handle = create(guest);
            long matrix = guest.allocate(DENSE_BYTES);
            List<Consumer<Content<?>>> wrong = new ArrayList<>();
            for (int value : new int[] {-1, 3, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
                wrong.add(content -> content.matmul(HwsSltMatmul.OP_A_OFFSET, value));
                wrong.add(content -> content.matmul(HwsSltMatmul.OP_B_OFFSET, value));
                wrong.add(content -> content.matmul(HwsSltMatmul.COMPUTE_TYPE_OFFSET, value));
                wrong.add(content -> content.matmul(HwsSltMatmul.SCALE_MODES_OFFSET + 16, value == 3 ? 4 : value));
                wrong.add(content -> content.matrix(1, HwsSltMatrix.ORDER_OFFSET, value));
                wrong.add(content -> content.matrix(2, HwsSltMatrix.IS_STRUCTURED_OFFSET, value));
                wrong.add(content -> content.matrix(0, HwsSltMatrix.SPARSITY_OFFSET, value));
                wrong.add(content -> content.algorithm(HwsSltAlgorithm.ALG_OFFSET, value));
            }
            for (int value : new int[] {-1, 16, 34, 1 << 20, Integer.MIN_VALUE}) { // integers of 4 bits, or no type
                wrong.add(content -> content.matrix(3, HwsSltMatrix.TYPE_OFFSET, value));
            }
            wrong.add(content -> content.algorithm(HwsSltAlgorithm.IS_SET_OFFSET, 64));
            wrong.add(content -> content.matrix(0, HwsSltMatrix.IS_STRUCTURED_OFFSET, 0));
            wrong.add(content -> content.matrix(1, HwsSltMatrix.IS_STRUCTURED_OFFSET, 1));
            wrong.add(content -> content.matrix(1, HwsSltMatrix.NUM_BATCHES_OFFSET, 0));
            wrong.add(content -> content.matrix(1, HwsSltMatrix.NUM_BATCHES_OFFSET, -1));
            for (int offset : new int[] {HwsSltMatrix.ROWS_OFFSET, HwsSltMatrix.COLS_OFFSET, HwsSltMatrix.LD_OFFSET,
                HwsSltMatrix.BATCH_STRIDE_OFFSET}) {
                wrong.add(content -> content.matrix(2, offset, -1L));
                wrong.add(content -> content.matrix(2, offset, Long.MIN_VALUE));
            }
            for (Consumer<Content<?>> change : wrong) {
                Product product = new Product(handle, matrix);
                Question question = new Question(handle, HwsSltStage.HWS_SLT_PLAN);
                change.accept(product);
                change.accept(question);
                assertEquals(CUSPARSE_STATUS_INVALID_VALUE, product.call(guest));
                assertEquals(CUSPARSE_STATUS_INVALID_VALUE, question.ask(guest).status());
            }
            for (int stage : new int[] {-1, HwsSltStage.HWS_SLT_STAGES, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
                assertEquals(CUSPARSE_STATUS_INVALID_VALUE, new Question(handle, stage).ask(guest).status());
            }
            assertEquals(0, HeapMath.structuredOf(rig.gpu()).made());
        }
    }

    @Test
    void shouldRefuseMatricesOutsideTheSessionsMemory() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long handle = create(guest);
            long matrix = guest.allocate(DENSE_BYTES);
            long compressed = guest.allocate(HeapCusparseLt.COMPRESSED_BYTES);
            assertEquals(0, new Product(handle, matrix).at(0, compressed).call(guest), "a compressed matrix");
            assertEquals(CUSPARSE_STATUS_INVALID_VALUE, new Product(handle, matrix).at(0, compressed + 16).call(guest));
            for (int i = 0; i < 4; i++) {
                for (long wrong : new long[] {-1, 8, Long.MIN_VALUE, matrix + (i == 0 ? DENSE_BYTES - 16 : 16)}) {
                    assertEquals(CUSPARSE_STATUS_INVALID_VALUE, new Product(handle, matrix).at(i, wrong).call(guest));
                }
                assertEquals(i == 2 ? 0 : CUSPARSE_STATUS_INVALID_VALUE,
                    new Product(handle, matrix).at(i, 0).call(guest));
            }
            for (long ld : new long[] {N + 1, Long.MAX_VALUE, 1L << 58}) {
                assertEquals(CUSPARSE_STATUS_INVALID_VALUE,
                    new Product(handle, matrix).matrix(3, HwsSltMatrix.LD_OFFSET, ld).call(guest));
            }
            assertEquals(CUSPARSE_STATUS_INVALID_VALUE, new Product(handle, matrix)
                .matrix(1, HwsSltMatrix.NUM_BATCHES_OFFSET, 2)
                .matrix(1, HwsSltMatrix.BATCH_STRIDE_OFFSET, (long) N * N).call(guest));
            assertEquals(0, new Product(handle, matrix)
                .matrix(1, HwsSltMatrix.NUM_BATCHES_OFFSET, 2).call(guest), "one matrix for all batches");
            Product product = new Product(handle, matrix);
            for (long wrong : new long[] {-1, 8, matrix + DENSE_BYTES - HeapCusparseLt.WORKSPACE_BYTES + 1}) {
                product.workspace = wrong;
                assertEquals(CUSPARSE_STATUS_INVALID_VALUE, product.call(guest));
            }
            HeapCusparseLt library = HeapMath.structuredOf(rig.gpu());
            assertEquals(3, library.runs().size());
        }
    }

    @Test
    void shouldRefuseAddressesOfDescriptorsOutsideTheSessionsMemory() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long handle = create(guest);
            long matrix = guest.allocate(DENSE_BYTES);
            HeapCusparseLt library = HeapMath.structuredOf(rig.gpu());
            for (int at = HwsSltMatmul.BIAS_OFFSET; at < HwsSltMatmul.BYTES; at += Long.BYTES) {
                if (at == HwsSltMatmul.SPARSE_MATRIX_OFFSET) {
                    continue; // a hint
                }
                for (long wrong : new long[] {-1, 8, Long.MIN_VALUE}) {
                    assertEquals(CUSPARSE_STATUS_INVALID_VALUE,
                        new Product(handle, matrix).address(at, wrong).call(guest));
                }
            }
            assertEquals(CUSPARSE_STATUS_INVALID_VALUE, new Product(handle, matrix)
                .address(HwsSltMatmul.BIAS_OFFSET, matrix + DENSE_BYTES - N).call(guest), "a bias of N shorts");
            assertEquals(0, library.made());
            long bias = guest.allocate(N * Short.BYTES);
            Product product = new Product(handle, matrix);
            product.address(HwsSltMatmul.BIAS_OFFSET, bias);
            assertEquals(0, product.call(guest));
            assertEquals(0, guest.call(Guest.MEM_FREE, bias).status());
            assertEquals(CUSPARSE_STATUS_INVALID_VALUE, product.call(guest), "freed memory");
            assertEquals(1, library.runs().size());
        }
    }

    @Test
    void shouldPassTheMatrixOfDescriptorOnlyWhileItIsTheSessions() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            Product product = new Product(create(guest), guest.allocate(DENSE_BYTES));
            long pruned = guest.allocate(DENSE_BYTES);
            product.address(HwsSltMatmul.SPARSE_MATRIX_OFFSET, pruned);
            assertEquals(0, product.call(guest));
            HeapCusparseLt library = HeapMath.structuredOf(rig.gpu());
            assertEquals(pruned, library.content().matmul().get(ValueLayout.JAVA_LONG,
                HwsSltMatmul.SPARSE_MATRIX_OFFSET));
            assertEquals(0, guest.call(Guest.MEM_FREE, pruned).status());
            assertEquals(0, product.call(guest));
            assertEquals(0, library.content().matmul().get(ValueLayout.JAVA_LONG, HwsSltMatmul.SPARSE_MATRIX_OFFSET));
            assertEquals(2, library.runs().size());
        }
    }

    @Test
    void shouldCheckVectorsInThePlaceOfNumbers() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long handle = create(guest);
            long matrix = guest.allocate(DENSE_BYTES);
            long vector = guest.allocate(N * Float.BYTES);
            HeapCusparseLt library = HeapMath.structuredOf(rig.gpu());
            for (long address : new long[] {vector, vector + 4, 8, -1}) {
                Product product = new Product(handle, matrix).scalar(0, address);
                product.matmul(HwsSltMatmul.ALPHA_VECTOR_OFFSET, 1);
                assertEquals(address == vector ? 0 : CUSPARSE_STATUS_INVALID_VALUE, product.call(guest));
            }
            assertEquals(1, library.runs().size());
            assertTrue(Float.isNaN(library.alpha()));
            assertEquals(vector, library.runs().get(0).alpha().address());
        }
    }

    @Test
    void shouldEndTheSessionForWhatNoGuestLibrarySends() throws IOException {
        List<Consumer<Product>> wrong = List.of(
            product -> product.scalar(0, product.addresses[0]), // a vector without the attribute
            product -> product.matmul(HwsSltMatmul.BETA_VECTOR_OFFSET, 1), // the reverse
            product -> product.scalarBytes = Double.BYTES,
            product -> product.scalarBytes = 0,
            product -> product.streamCount = -1,
            product -> product.streamCount = CusparseLtCalls.MAX_STREAMS + 1);
        for (Consumer<Product> change : wrong) {
            try (Rig rig = Rig.withGuest(Carrier.TCP)) {
                Guest guest = rig.guest();
                Product product = new Product(create(guest), guest.allocate(DENSE_BYTES));
                change.accept(product);
                guest.send(CusparseLtOpcodes.hwsSltMatmul, Guest.REPLY | Guest.CREDITED, product);
                assertTrue(guest.reasonOfLoss().length() > 0);
                assertEquals(0, HeapMath.structuredOf(rig.gpu()).runs().size());
            }
        }
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            Work work = new Work(create(guest), HwsSltFunction.HWS_SLT_FUNCTIONS, guest.allocate(DENSE_BYTES));
            guest.send(CusparseLtOpcodes.hwsSltChange, Guest.REPLY | Guest.CREDITED, work);
            assertTrue(guest.reasonOfLoss().length() > 0);
        }
    }

    @Test
    void shouldPassAllStreamsOfProduct() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            Product product = new Product(create(guest), guest.allocate(DENSE_BYTES));
            long[] streams = {guest.createStream(), guest.createStream()};
            product.streamCount = 2;
            product.with(out -> {
                out.i64(HwsSltTarget.STREAMS_OFFSET, streams[0]);
                out.i64(HwsSltTarget.STREAMS_OFFSET + Long.BYTES, streams[1]);
            });
            assertEquals(0, product.call(guest));
            assertEquals(2, HeapMath.structuredOf(rig.gpu()).streams().stream().distinct().count());
            streams[1] = guest.newId(HandleKind.STREAM); // never created
            guest.send(CusparseLtOpcodes.hwsSltMatmul, Guest.REPLY | Guest.CREDITED, product);
            assertTrue(guest.reasonOfLoss().contains("handle"));
            assertEquals(1, HeapMath.structuredOf(rig.gpu()).runs().size());
        }
    }

    @Test
    void shouldReturnTheAlgorithmThatSearchesFind() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            Product product = new Product(create(guest), guest.allocate(DENSE_BYTES));
            product.algorithm(HwsSltAlgorithm.IS_SET_OFFSET, 4).algorithm(HwsSltAlgorithm.VALUES_OFFSET + 8, 20);
            Guest.Received found = product.search(guest);
            assertEquals(0, found.status());
            assertEquals(HeapCusparseLt.FOUND_ID, found.i32(HwsSltAlgorithm.VALUES_OFFSET));
            assertEquals(HeapCusparseLt.WORKSPACE_BYTES,
                found.i64(HwsSltAlgorithm.BYTES + HwsSltFacts.WORKSPACE_BYTES_OFFSET));
            HeapCusparseLt library = HeapMath.structuredOf(rig.gpu());
            assertEquals(0, library.live(), "a search changes its plan");
            library.refuse(HeapCusparseLt.FOUND_ID);
            found = product.search(guest);
            assertEquals(0, found.status());
            assertEquals(0, found.i32(HwsSltAlgorithm.VALUES_OFFSET), "the algorithm of the program");
            assertEquals(20, found.i32(HwsSltAlgorithm.VALUES_OFFSET + 8));
            assertEquals(0, library.live());
            assertEquals(CUSPARSE_STATUS_INVALID_VALUE, product.at(1, 8).search(guest).status());
            assertEquals(0, library.live());
            assertEquals(2, library.runs().size());
        }
    }

    @Test
    void shouldCheckMemoryOfWorkOnTheMatrixWithStructure() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long handle = create(guest);
            long dense = guest.allocate(DENSE_BYTES);
            long number = guest.allocate(Integer.BYTES);
            long compressed = guest.allocate(HeapCusparseLt.COMPRESSED_BYTES);
            long buffer = guest.allocate(HeapCusparseLt.BUFFER_BYTES);
            HeapCusparseLt library = HeapMath.structuredOf(rig.gpu());
            int done = 0;
            for (int function = 0; function < HwsSltFunction.HWS_SLT_FUNCTIONS; function++) {
                Work work = new Work(handle, function, dense);
                boolean compresses = function >= HwsSltFunction.HWS_SLT_COMPRESS;
                boolean checks = !compresses && function >= HwsSltFunction.HWS_SLT_CHECK;
                work.output = compresses ? compressed : checks ? number : dense;
                work.buffer = compresses ? buffer : 0;
                assertEquals(0, work.call(guest), "function=" + function);
                assertEquals(++done, library.changes().size());
                assertEquals(function, library.changes().get(done - 1).function());
                long right = work.output;
                for (long wrong : new long[] {0, 8, -1, right + 1}) {
                    work.output = wrong;
                    assertEquals(CUSPARSE_STATUS_INVALID_VALUE, work.call(guest), "function=" + function);
                }
                work.output = right;
                for (long wrong : new long[] {0, 8, -1, dense + 1}) {
                    work.input = wrong;
                    assertEquals(CUSPARSE_STATUS_INVALID_VALUE, work.call(guest), "function=" + function);
                }
                work.input = dense;
                for (long wrong : new long[] {8, -1, buffer + 1}) {
                    work.buffer = wrong;
                    assertEquals(CUSPARSE_STATUS_INVALID_VALUE, work.call(guest), "function=" + function);
                }
            }
            for (int function : new int[] {HwsSltFunction.HWS_SLT_PRUNE2, HwsSltFunction.HWS_SLT_CHECK2,
                HwsSltFunction.HWS_SLT_COMPRESS2}) {
                assertEquals(CUSPARSE_STATUS_INVALID_VALUE, new Work(handle, function, dense)
                    .matrix(0, HwsSltMatrix.IS_STRUCTURED_OFFSET, 0).call(guest), "a dense matrix");
            }
            library.hideSizes(CUSPARSE_STATUS_NOT_SUPPORTED);
            Work unsized = new Work(handle, HwsSltFunction.HWS_SLT_COMPRESS, dense);
            unsized.matrix(0, HwsSltMatrix.ALIGNMENT_OFFSET, 32); // another content
            assertEquals(CUSPARSE_STATUS_NOT_SUPPORTED, unsized.call(guest));
            assertEquals(done, library.changes().size());
        }
    }

    @Test
    void shouldRefuseTruncatedRecords() throws IOException {
        int whole = Product.MATRICES + 4 * Long.BYTES;
        for (int bytes : new int[] {0, 8, HwsSltTarget.BYTES, Product.SCALARS, Product.MATRICES, whole - 8,
            whole + 8}) {
            try (Rig rig = Rig.withGuest(Carrier.TCP)) {
                Guest guest = rig.guest();
                create(guest);
                guest.send(CusparseLtOpcodes.hwsSltMatmul, Guest.REPLY | Guest.CREDITED, out -> {
                    if (bytes > 0) {
                        out.fixed(bytes);
                    }
                });
                assertTrue(guest.reasonOfLoss().length() > 0);
                assertEquals(0, HeapMath.structuredOf(rig.gpu()).made());
            }
        }
    }

    @Test
    void shouldCountHandlesOnTheQuota() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, 4 * HeapCusparseLt.HANDLE_BYTES)) {
            Guest guest = rig.guest();
            int made = 0;
            int status = 0;
            while (status == 0 && made < 10) {
                status = guest.call(CusparseLtOpcodes.hwsSltCreate, guest.newId(HandleKind.CUSPARSELT)).status();
                made += status == 0 ? 1 : 0;
            }
            assertEquals(CUSPARSE_STATUS_ALLOC_FAILED, status);
            assertTrue(made >= 1 && made <= 4, "made=" + made);
            assertEquals(made, HeapMath.structuredOf(rig.gpu()).handles());
        }
    }
}
