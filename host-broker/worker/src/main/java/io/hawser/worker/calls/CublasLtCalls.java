package io.hawser.worker.calls;

import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_ALLOC_FAILED;
import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_INVALID_VALUE;
import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_NOT_INITIALIZED;
import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_NOT_SUPPORTED;
import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_SUCCESS;

import io.hawser.cuda.backend.CublasLtBackend;
import io.hawser.cuda.backend.CublasLtBackend.Arguments;
import io.hawser.cuda.backend.CublasLtBackend.Content;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.MathProvider;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cublas.HwsScalar;
import io.hawser.cuda.generated.cublaslt.AlgorithmManualCalls;
import io.hawser.cuda.generated.cublaslt.AlgorithmReplies;
import io.hawser.cuda.generated.cublaslt.CublasLtDispatcher;
import io.hawser.cuda.generated.cublaslt.CublasLtDriver;
import io.hawser.cuda.generated.cublaslt.HandleManualCalls;
import io.hawser.cuda.generated.cublaslt.HandleReplies;
import io.hawser.cuda.generated.cublaslt.HwsLtAlgo;
import io.hawser.cuda.generated.cublaslt.HwsLtEmulation;
import io.hawser.cuda.generated.cublaslt.HwsLtLayout;
import io.hawser.cuda.generated.cublaslt.HwsLtPreference;
import io.hawser.cuda.generated.cublaslt.HwsLtTarget;
import io.hawser.cuda.generated.cublaslt.HwsLtTransform;
import io.hawser.cuda.generated.cublaslt.MatmulManualCalls;
import io.hawser.cuda.generated.cublaslt.cublasLtMatmulAlgo_t;
import io.hawser.cuda.generated.cublaslt.cublasLtMatmulHeuristicResult_t;
import io.hawser.cuda.generated.cublaslt.cublasLtMatmulSearch_t;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.HandleTable;
import io.hawser.worker.session.Session;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * cublasLt. The first call opens the machine's library. A call carries the content of its descriptors. The library's
 * descriptors of a content are made once and kept, so that a call of a kind that was seen before makes none. Session
 * thread.
 */
final class CublasLtCalls implements LibraryCalls, HandleManualCalls<Call>, MatmulManualCalls<Call>,
    AlgorithmManualCalls<Call> {
    /** Contents with descriptors in the library; a guest chooses how many different ones it sends. */
    static final int MAX_CONTENTS = 1024;

    private static final int SCALAR_BYTES = 16; // HwsScalar.value
    private static final int MANTISSA_COUNT_BYTES = 4; // CUBLASLT_EMULATION_DESC_..._BIT_COUNT_POINTER: int32_t
    private static final int MATMUL_LAYOUTS = 4;
    private static final int TRANSFORM_LAYOUTS = 3;
    private static final long EMULATION_BYTES = HwsLtEmulation.MANTISSA_BIT_COUNT_OFFSET; // without the address
    private static final long RESULT_BYTES = cublasLtMatmulHeuristicResult_t.BYTES;

    private final LibraryHandles handles;
    private final GpuBackend backend;
    private final CublasLtAlgorithms algorithms = new CublasLtAlgorithms();
    private final ContentCache<Product> products = new ContentCache<>(
        CublasLtShape.ADDRESSES + EMULATION_BYTES + MATMUL_LAYOUTS * HwsLtLayout.BYTES, MAX_CONTENTS, Product::close);
    private final ContentCache<Transform> transforms = new ContentCache<>(
        HwsLtTransform.BYTES + 2 * Long.BYTES + TRANSFORM_LAYOUTS * HwsLtLayout.BYTES, MAX_CONTENTS, Transform::close);
    private CublasLtBackend lt; // null while the library has not been opened, or is missing
    private CublasLtDispatcher<Call> dispatcher;

    /** Products of one content. */
    private static final class Product {
        private final CublasLtShape shape;
        private final CublasLtBackend.Matmul matmul; // null when the content is wrong
        private final MemorySegment accepted = Arena.ofAuto().allocate(cublasLtMatmulAlgo_t.BYTES, Long.BYTES);
        private boolean accepts; // the algorithm above, which the library has made or checked

        Product(CublasLtShape shape, CublasLtBackend.Matmul matmul) {
            this.shape = shape;
            this.matmul = matmul;
        }

        int status() {
            return matmul == null ? CUBLAS_STATUS_INVALID_VALUE : matmul.status();
        }

        void close() {
            if (matmul != null) {
                matmul.close();
            }
        }
    }

    /** Transforms of one content. */
    private record Transform(CublasLtShape shape, CublasLtBackend.Transform transform) {
        int status() {
            return transform == null ? CUBLAS_STATUS_INVALID_VALUE : transform.status();
        }

        void close() {
            if (transform != null) {
                transform.close();
            }
        }
    }

    CublasLtCalls(Session session) {
        this.handles = new LibraryHandles(session.objects(), HandleKind.CUBLASLT, new LibraryHandles.Results(
            CUBLAS_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_NOT_INITIALIZED,
            CUBLAS_STATUS_ALLOC_FAILED), () -> null);
        this.backend = session.backend();
    }

    @Override
    public void dispatch(int opcode, Call call) {
        if (dispatcher == null) {
            lt = MathProviders.open(backend, MathProvider::cublasLt);
            dispatcher = new CublasLtDispatcher<>(new CublasLtDriver() {}, this, this, this);
        }
        dispatcher.dispatch(call);
    }

    @Override
    public void cublasLtCreate(Call call, long lightHandleId) {
        handles.create(call, lightHandleId, lt);
    }

    @Override
    public void cublasLtDestroy(Call call, long lightHandle, long lightHandleId) {
        handles.destroy(call, lightHandle, lightHandleId, lt);
    }

    @Override
    public void cublasLtGetProperty(Call call, int type_) {
        MemorySegment value = call.scratch(Integer.BYTES);
        int status = lt == null ? CUBLAS_STATUS_NOT_SUPPORTED : lt.property(type_, value);
        if (status == CUBLAS_STATUS_SUCCESS) {
            HandleReplies.cublasLtGetProperty(call.reply(), value.get(ValueLayout.JAVA_INT, 0));
        }
        call.finish(status);
    }

    /** The native handle of a call, one of cublasLt or of cuBLAS; the call has ended if it is not valid. */
    private long handle(Call call, MemorySegment target) {
        if (lt == null) {
            call.fail(CUBLAS_STATUS_NOT_SUPPORTED);
            return 0;
        }
        long id = target.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsLtTarget.HANDLE_OFFSET);
        return call.handle(HandleTable.isOfKind(HandleKind.CUBLAS, id) ? HandleKind.CUBLAS : HandleKind.CUBLASLT, id);
    }

    private static long stream(Call call, MemorySegment target) {
        return call.handle(HandleKind.STREAM, target.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsLtTarget.STREAM_OFFSET));
    }

    private static MemorySegment copy(MemorySegment content) {
        return Arena.ofAuto().allocate(content.byteSize(), Long.BYTES).copyFrom(content);
    }

    private static MemorySegment[] copies(MemorySegment... contents) {
        MemorySegment[] copies = new MemorySegment[contents.length];
        for (int i = 0; i < contents.length; i++) {
            copies[i] = copy(contents[i]);
        }
        return copies;
    }

    /** The product with a content: descriptors, without addresses. */
    private Product product(MemorySegment desc, MemorySegment emulation, MemorySegment a, MemorySegment b,
        MemorySegment c, MemorySegment d) {
        MemorySegment key = products.wanted();
        long at = CublasLtShape.ADDRESSES;
        MemorySegment.copy(desc, 0, key, 0, at);
        MemorySegment.copy(emulation, 0, key, at, EMULATION_BYTES);
        at += EMULATION_BYTES;
        MemorySegment.copy(a, 0, key, at, HwsLtLayout.BYTES);
        MemorySegment.copy(b, 0, key, at + HwsLtLayout.BYTES, HwsLtLayout.BYTES);
        MemorySegment.copy(c, 0, key, at + 2L * HwsLtLayout.BYTES, HwsLtLayout.BYTES);
        MemorySegment.copy(d, 0, key, at + 3L * HwsLtLayout.BYTES, HwsLtLayout.BYTES);
        return products.findOrMake(() -> {
            MemorySegment plain = copy(desc);
            plain.asSlice(CublasLtShape.ADDRESSES).fill((byte) 0);
            MemorySegment plainEmulation = copy(emulation);
            plainEmulation.asSlice(EMULATION_BYTES).fill((byte) 0);
            MemorySegment[] layouts = copies(a, b, c, d);
            CublasLtShape shape = CublasLtShape.ofMatmul(plain, layouts);
            return new Product(shape, shape.isKnown() ? lt.matmul(new Content(plain, plainEmulation, layouts)) : null);
        });
    }

    /** Whether a matrix lies in the session's memory. Ends the call if not. */
    private static boolean checkMatrix(Call call, CublasLtShape shape, int matrix, long address) {
        return call.checkDevice(address, shape.matrixBytes(matrix)) && (shape.planeOffset(matrix) == 0
            || call.checkDevice(address + shape.planeOffset(matrix), shape.matrixBytes(matrix)));
    }

    /** A number: its bytes, or its address on the device, a pointer to no bytes. Ends the call if it is wrong. */
    private static MemorySegment scalar(Call call, MemorySegment content, long deviceBytes) {
        if (deviceBytes == 0) {
            return LibraryNumbers.aligned(call, content.asSlice(HwsScalar.VALUE_OFFSET, SCALAR_BYTES));
        }
        long address = content.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsScalar.ADDRESS_OFFSET);
        call.checkDevice(address, deviceBytes);
        return MemorySegment.ofAddress(address);
    }

    /** Whether what a product's descriptors point to lies in the session's memory. Ends the call if not. */
    private static boolean checkAddresses(Call call, CublasLtShape shape, MemorySegment desc, MemorySegment emulation) {
        for (int i = 0; i < shape.addresses(); i++) {
            long address = desc.get(ValueLayout.JAVA_LONG_UNALIGNED, CublasLtShape.ADDRESSES + (long) i * Long.BYTES);
            if (address != 0 && shape.uses(i) && !call.checkDevice(address, shape.addressBytes(i))) {
                return false;
            }
        }
        long count = emulation.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsLtEmulation.MANTISSA_BIT_COUNT_OFFSET);
        return count == 0 || call.checkDevice(count, MANTISSA_COUNT_BYTES);
    }

    @Override
    public void hwsLtMatmul(Call call, MemorySegment target, MemorySegment computeDesc, MemorySegment emulation,
        MemorySegment Adesc, MemorySegment Bdesc, MemorySegment Cdesc, MemorySegment Ddesc, MemorySegment alpha,
        MemorySegment beta, long A, long B, long C, long D, MemorySegment algo) {
        long made = handle(call, target);
        long stream = stream(call, target);
        if (call.isRejected()) {
            return;
        }
        Product product = product(computeDesc, emulation, Adesc, Bdesc, Cdesc, Ddesc);
        CublasLtShape shape = product.shape;
        if (product.status() != CUBLAS_STATUS_SUCCESS) {
            call.fail(product.status());
            return;
        }
        long workspace = target.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsLtTarget.WORKSPACE_OFFSET);
        long workspaceBytes = target.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsLtTarget.WORKSPACE_BYTES_OFFSET);
        MemorySegment first = scalar(call, alpha, shape.alphaBytes());
        MemorySegment second = scalar(call, beta, shape.betaBytes());
        if (call.isRejected() || !checkMatrix(call, shape, 0, A) || !checkMatrix(call, shape, 1, B)
            || C != 0 && !checkMatrix(call, shape, 2, C) || !checkMatrix(call, shape, 3, D)
            || !checkAddresses(call, shape, computeDesc, emulation) || !call.checkDevice(workspace, workspaceBytes)) {
            return;
        }
        MemorySegment chosen = MemorySegment.NULL;
        if (algo.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsLtAlgo.IS_SET_OFFSET) != 0) {
            chosen = algo.asSlice(HwsLtAlgo.DATA_OFFSET, cublasLtMatmulAlgo_t.BYTES);
            int status = accept(call, product, made, computeDesc, emulation, chosen);
            if (status != CUBLAS_STATUS_SUCCESS) {
                call.fail(status);
                return;
            }
        }
        call.countKernel();
        call.finish(product.matmul.run(new Arguments(made, stream, first, second, A, B, C, D), computeDesc, emulation,
            chosen, workspace, workspaceBytes));
    }

    /** CUBLAS_STATUS_SUCCESS when the library may get an algorithm for a product; see CublasLtAlgorithms. */
    private int accept(Call call, Product product, long handle, MemorySegment desc, MemorySegment emulation,
        MemorySegment algo) {
        if (product.accepts && product.accepted.mismatch(algo) < 0) {
            return CUBLAS_STATUS_SUCCESS;
        }
        if (!algorithms.has(algo)) {
            int status = product.matmul.check(handle, desc, emulation, algo, call.scratch(RESULT_BYTES));
            if (status != CUBLAS_STATUS_SUCCESS) {
                return status;
            }
        }
        product.accepted.copyFrom(algo);
        product.accepts = true;
        return CUBLAS_STATUS_SUCCESS;
    }

    @Override
    public void hwsLtMatrixTransform(Call call, MemorySegment target, MemorySegment transformDesc, MemorySegment Adesc,
        MemorySegment Bdesc, MemorySegment Cdesc, MemorySegment alpha, MemorySegment beta, long A, long B, long C) {
        long made = handle(call, target);
        long stream = stream(call, target);
        if (call.isRejected()) {
            return;
        }
        MemorySegment key = transforms.wanted();
        MemorySegment.copy(transformDesc, 0, key, 0, HwsLtTransform.BYTES);
        long at = HwsLtTransform.BYTES;
        key.set(ValueLayout.JAVA_LONG, at, A == 0 ? 0 : 1); // the layout of an absent matrix has no meaning
        key.set(ValueLayout.JAVA_LONG, at + Long.BYTES, B == 0 ? 0 : 1);
        at += 2 * Long.BYTES;
        MemorySegment.copy(Adesc, 0, key, at, HwsLtLayout.BYTES);
        MemorySegment.copy(Bdesc, 0, key, at + HwsLtLayout.BYTES, HwsLtLayout.BYTES);
        MemorySegment.copy(Cdesc, 0, key, at + 2L * HwsLtLayout.BYTES, HwsLtLayout.BYTES);
        Transform transform = transforms.findOrMake(() -> {
            MemorySegment[] layouts = copies(Adesc, Bdesc, Cdesc);
            MemorySegment desc = copy(transformDesc);
            CublasLtShape shape = CublasLtShape.ofTransform(desc, A != 0, B != 0, layouts);
            return new Transform(shape, shape.isKnown() ? lt.transform(new Content(desc, null, layouts)) : null);
        });
        if (transform.status() != CUBLAS_STATUS_SUCCESS) {
            call.fail(transform.status());
            return;
        }
        CublasLtShape shape = transform.shape();
        MemorySegment first = scalar(call, alpha, shape.alphaBytes());
        MemorySegment second = scalar(call, beta, shape.betaBytes());
        if (call.isRejected() || A != 0 && !checkMatrix(call, shape, 0, A) || B != 0 && !checkMatrix(call, shape, 1, B)
            || !checkMatrix(call, shape, 2, C)) {
            return;
        }
        call.countKernel();
        call.finish(transform.transform().run(new Arguments(made, stream, first, second, A, B, C, 0)));
    }

    @Override
    public void hwsLtAlgoGetHeuristic(Call call, MemorySegment target, MemorySegment computeDesc,
        MemorySegment emulation, MemorySegment Adesc, MemorySegment Bdesc, MemorySegment Cdesc, MemorySegment Ddesc,
        MemorySegment preference, int requestedAlgoCount, int algoBytes, MemorySegment algos) {
        long made = handle(call, target);
        if (call.isRejected()) {
            return;
        }
        // The reply must fit into its limit; the guest's library asks for no more.
        if (requestedAlgoCount <= 0 || requestedAlgoCount > AlgorithmLimits.HEURISTICS) {
            call.fatal("a heuristic returns 1 to " + AlgorithmLimits.HEURISTICS + " algorithms: requested="
                + requestedAlgoCount);
            return;
        }
        MemorySegment results = call.scratch(requestedAlgoCount * RESULT_BYTES);
        boolean isLimited = preference.get(ValueLayout.JAVA_SHORT_UNALIGNED, HwsLtPreference.SEARCH_MODE_OFFSET)
            != cublasLtMatmulSearch_t.CUBLASLT_SEARCH_BEST_FIT;
        int status = isLimited ? give(algos, requestedAlgoCount, results) : CUBLAS_STATUS_SUCCESS;
        MemorySegment count = call.scratch(Integer.BYTES);
        if (status == CUBLAS_STATUS_SUCCESS) {
            Product product = product(computeDesc, emulation, Adesc, Bdesc, Cdesc, Ddesc);
            status = product.status() != CUBLAS_STATUS_SUCCESS ? product.status()
                : product.matmul.heuristic(made, computeDesc, emulation, preference, requestedAlgoCount, results,
                    count);
        }
        if (status == CUBLAS_STATUS_SUCCESS) {
            int found = Math.clamp(count.get(ValueLayout.JAVA_INT, 0), 0, requestedAlgoCount);
            for (int i = 0; i < found; i++) {
                algorithms.add(results.asSlice(i * RESULT_BYTES, cublasLtMatmulAlgo_t.BYTES));
            }
            AlgorithmReplies.hwsLtAlgoGetHeuristic(call.reply(), results.asSlice(0, found * RESULT_BYTES));
        }
        call.finish(status);
    }

    /** Puts the algorithms of a limited search into the results. The library must have made each. */
    private int give(MemorySegment algos, int requested, MemorySegment results) {
        if (algos.byteSize() != (long) requested * cublasLtMatmulAlgo_t.BYTES) {
            return CUBLAS_STATUS_INVALID_VALUE;
        }
        for (int i = 0; i < requested; i++) {
            MemorySegment algo = algos.asSlice((long) i * cublasLtMatmulAlgo_t.BYTES, cublasLtMatmulAlgo_t.BYTES);
            if (!algorithms.has(algo)) {
                return CUBLAS_STATUS_INVALID_VALUE;
            }
            MemorySegment.copy(algo, 0, results, i * RESULT_BYTES, cublasLtMatmulAlgo_t.BYTES);
        }
        return CUBLAS_STATUS_SUCCESS;
    }

    @Override
    public void hwsLtAlgoCheck(Call call, MemorySegment target, MemorySegment computeDesc, MemorySegment emulation,
        MemorySegment Adesc, MemorySegment Bdesc, MemorySegment Cdesc, MemorySegment Ddesc, MemorySegment algo) {
        long made = handle(call, target);
        if (call.isRejected()) {
            return;
        }
        MemorySegment result = call.scratch(RESULT_BYTES);
        Product product = product(computeDesc, emulation, Adesc, Bdesc, Cdesc, Ddesc);
        int status = product.status() != CUBLAS_STATUS_SUCCESS ? product.status()
            : product.matmul.check(made, computeDesc, emulation, algo, result);
        if (status == CUBLAS_STATUS_SUCCESS) {
            product.accepted.copyFrom(algo);
            product.accepts = true;
            AlgorithmReplies.hwsLtAlgoCheck(call.reply(), result);
        }
        call.finish(status);
    }

    @Override
    public void hwsLtAlgoGetIds(Call call, MemorySegment target, int computeType, int scaleType, int Atype, int Btype,
        int Ctype, int Dtype, int requestedAlgoCount) {
        long made = handle(call, target);
        if (call.isRejected()) {
            return;
        }
        if (requestedAlgoCount <= 0 || requestedAlgoCount > AlgorithmLimits.IDS) {
            call.fatal("a list has 1 to " + AlgorithmLimits.IDS + " algorithms: requested=" + requestedAlgoCount);
            return;
        }
        MemorySegment ids = call.scratch((long) requestedAlgoCount * Integer.BYTES);
        MemorySegment count = call.scratch(Integer.BYTES);
        int status = lt.algoIds(made, new int[] {computeType, scaleType, Atype, Btype, Ctype, Dtype},
            requestedAlgoCount, ids, count);
        if (status == CUBLAS_STATUS_SUCCESS) {
            int found = Math.clamp(count.get(ValueLayout.JAVA_INT, 0), 0, requestedAlgoCount);
            AlgorithmReplies.hwsLtAlgoGetIds(call.reply(), ids.asSlice(0, (long) found * Integer.BYTES));
        }
        call.finish(status);
    }

    @Override
    public void hwsLtAlgoInit(Call call, MemorySegment target, int computeType, int scaleType, int Atype, int Btype,
        int Ctype, int Dtype, int algoId) {
        long made = handle(call, target);
        if (call.isRejected()) {
            return;
        }
        MemorySegment algo = call.scratch(cublasLtMatmulAlgo_t.BYTES);
        int status = lt.algoInit(made, new int[] {computeType, scaleType, Atype, Btype, Ctype, Dtype}, algoId, algo);
        if (status == CUBLAS_STATUS_SUCCESS) {
            algorithms.add(algo);
            AlgorithmReplies.hwsLtAlgoInit(call.reply(), algo);
        }
        call.finish(status);
    }

    @Override
    public void hwsLtAlgoGetAttribute(Call call, MemorySegment algo, int isConfig, int attr, int sizeInBytes) {
        if (sizeInBytes < 0 || sizeInBytes > AlgorithmLimits.ATTRIBUTE_BYTES) {
            call.fatal("an attribute has at most " + AlgorithmLimits.ATTRIBUTE_BYTES + " bytes: sizeInBytes="
                + Integer.toUnsignedString(sizeInBytes));
            return;
        }
        MemorySegment value = call.scratch(sizeInBytes);
        MemorySegment written = call.scratch(Long.BYTES);
        int status = lt == null ? CUBLAS_STATUS_NOT_SUPPORTED
            : !algorithms.has(algo) ? CUBLAS_STATUS_INVALID_VALUE
            : isConfig != 0 ? lt.configuration(algo, attr, value, sizeInBytes, written)
            : lt.capability(algo, attr, value, sizeInBytes, written);
        if (status == CUBLAS_STATUS_SUCCESS) {
            AlgorithmReplies.hwsLtAlgoGetAttribute(call.reply(), written.get(ValueLayout.JAVA_LONG, 0), value);
        }
        call.finish(status);
    }

    @Override
    public void hwsLtAlgoSetAttribute(Call call, MemorySegment algo, int attr, int sizeInBytes, MemorySegment value) {
        MemorySegment changed = call.scratch(cublasLtMatmulAlgo_t.BYTES).copyFrom(algo);
        int status = lt == null ? CUBLAS_STATUS_NOT_SUPPORTED
            : algorithms.has(algo) ? lt.configure(changed, attr, value, sizeInBytes) : CUBLAS_STATUS_INVALID_VALUE;
        if (status == CUBLAS_STATUS_SUCCESS) {
            algorithms.add(changed);
            AlgorithmReplies.hwsLtAlgoSetAttribute(call.reply(), changed);
        }
        call.finish(status);
    }

    /** Limits of the description (algorithm.yaml). */
    private static final class AlgorithmLimits {
        private static final int HEURISTICS = 512;
        private static final int IDS = 4096;
        private static final int ATTRIBUTE_BYTES = 16384;

        private AlgorithmLimits() {
        }
    }
}
