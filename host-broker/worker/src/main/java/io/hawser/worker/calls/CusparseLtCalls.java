package io.hawser.worker.calls;

import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_ALLOC_FAILED;
import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_INVALID_VALUE;
import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_NOT_INITIALIZED;
import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_NOT_SUPPORTED;
import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_SUCCESS;

import io.hawser.cuda.backend.CusparseLtBackend;
import io.hawser.cuda.backend.CusparseLtBackend.Arguments;
import io.hawser.cuda.backend.CusparseLtBackend.Change;
import io.hawser.cuda.backend.CusparseLtBackend.Content;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.MathProvider;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cusparselt.CusparseLtDispatcher;
import io.hawser.cuda.generated.cusparselt.CusparseLtDriver;
import io.hawser.cuda.generated.cusparselt.HandleManualCalls;
import io.hawser.cuda.generated.cusparselt.HandleReplies;
import io.hawser.cuda.generated.cusparselt.HwsSltAlgorithm;
import io.hawser.cuda.generated.cusparselt.HwsSltFacts;
import io.hawser.cuda.generated.cusparselt.HwsSltFunction;
import io.hawser.cuda.generated.cusparselt.HwsSltMatmul;
import io.hawser.cuda.generated.cusparselt.HwsSltMatrix;
import io.hawser.cuda.generated.cusparselt.HwsSltOwner;
import io.hawser.cuda.generated.cusparselt.HwsSltStage;
import io.hawser.cuda.generated.cusparselt.HwsSltTarget;
import io.hawser.cuda.generated.cusparselt.HwsSltWork;
import io.hawser.cuda.generated.cusparselt.MatmulManualCalls;
import io.hawser.cuda.generated.cusparselt.MatmulReplies;
import io.hawser.cuda.generated.cusparselt.PlanManualCalls;
import io.hawser.cuda.generated.cusparselt.PlanReplies;
import io.hawser.cuda.generated.cusparselt.SparseManualCalls;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.Session;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * cuSPARSELt. The first call opens the machine's library. A call carries the content of a plan or a descriptor. The
 * library's objects of a content that work uses are made once and kept, addresses included, because a plan depends on
 * them. Session thread.
 */
final class CusparseLtCalls implements LibraryCalls, HandleManualCalls<Call>, PlanManualCalls<Call>,
    MatmulManualCalls<Call>, SparseManualCalls<Call> {
    /** Contents with objects in the library; a guest chooses how many different ones it sends. */
    static final int MAX_CONTENTS = 512;
    /** Streams of a product: as many as the record has. */
    static final int MAX_STREAMS = (HwsSltTarget.WORKSPACE_OFFSET - HwsSltTarget.STREAMS_OFFSET) / Long.BYTES;

    private static final int C = 2;
    private static final int D = 3;

    private final GuestObjects objects;
    private final LibraryHandles handles;
    private final GpuBackend backend;
    private final ContentCache<Problem> problems = new ContentCache<>(3L * Long.BYTES + HwsSltMatmul.BYTES
        + (long) CusparseLtShape.MATRICES * HwsSltMatrix.BYTES + HwsSltAlgorithm.BYTES, MAX_CONTENTS, Problem::close);
    private CusparseLtBackend library; // null while the library has not been opened, or is missing
    private CusparseLtDispatcher<Call> dispatcher;

    /** A content, and what the library has made of it with a handle. */
    private record Problem(long handle, CusparseLtShape shape, CusparseLtBackend.Made made, MemorySegment facts) {
        int status() {
            return made.status();
        }

        long fact(long offset) {
            return facts.get(ValueLayout.JAVA_LONG, offset);
        }

        void close() {
            made.close();
        }
    }

    CusparseLtCalls(Session session) {
        this.objects = session.objects();
        this.handles = new LibraryHandles(objects, HandleKind.CUSPARSELT, new LibraryHandles.Results(
            CUSPARSE_STATUS_NOT_SUPPORTED, CUSPARSE_STATUS_NOT_INITIALIZED, CUSPARSE_STATUS_ALLOC_FAILED), () -> null);
        this.backend = session.backend();
    }

    @Override
    public void dispatch(int opcode, Call call) {
        if (dispatcher == null) {
            library = MathProviders.open(backend, MathProvider::cusparseLt);
            dispatcher = new CusparseLtDispatcher<>(new CusparseLtDriver() {}, this, this, this, this);
        }
        dispatcher.dispatch(call);
    }

    /** Number of contents with objects in the library. */
    int contents() {
        return problems.size();
    }

    @Override
    public void hwsSltCreate(Call call, long id) {
        handles.create(call, id, library);
    }

    @Override
    public void hwsSltDestroy(Call call, long handle, long id) {
        problems.dropIf(problem -> problem.handle == handle);
        handles.destroy(call, handle, id, library);
    }

    @Override
    public void hwsSltVersion(Call call) {
        MemorySegment version = call.scratch(Integer.BYTES);
        int status = library == null ? CUSPARSE_STATUS_NOT_SUPPORTED : library.version(version);
        if (status == CUSPARSE_STATUS_SUCCESS) {
            HandleReplies.hwsSltVersion(call.reply(), version.get(ValueLayout.JAVA_INT, 0));
        }
        call.finish(status);
    }

    /** The native handle of a call; the call has ended if it is not valid. */
    private long handle(Call call, MemorySegment owner, long offset) {
        if (library == null) {
            call.fail(CUSPARSE_STATUS_NOT_SUPPORTED);
            return 0;
        }
        return call.handle(HandleKind.CUSPARSELT, owner.get(ValueLayout.JAVA_LONG_UNALIGNED, offset));
    }

    /** A content of the guest. Its matrix is a hint, and programs may free it early: then the library gets none. */
    private Content content(Call call, int stage, MemorySegment matmul, MemorySegment[] matrices,
        MemorySegment algorithm) {
        long hint = matmul.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsSltMatmul.SPARSE_MATRIX_OFFSET);
        if (hint == 0 || objects.allocations().contains(hint, 1)) {
            return new Content(stage, matmul, matrices, algorithm);
        }
        MemorySegment without = call.scratch(HwsSltMatmul.BYTES).copyFrom(matmul);
        without.set(ValueLayout.JAVA_LONG, HwsSltMatmul.SPARSE_MATRIX_OFFSET, 0);
        return new Content(stage, without, matrices, algorithm);
    }

    private static MemorySegment copy(MemorySegment content) {
        return Arena.ofAuto().allocate(content.byteSize(), Long.BYTES).copyFrom(content);
    }

    /** Whether what a matmul descriptor points to lies in the session's memory. Ends the call if not. */
    private static boolean checkAddresses(Call call, CusparseLtShape shape, MemorySegment matmul) {
        for (int i = 0; i < CusparseLtShape.ADDRESSES; i++) {
            long address = matmul.get(ValueLayout.JAVA_LONG_UNALIGNED,
                HwsSltMatmul.BIAS_OFFSET + (long) i * Long.BYTES);
            if (address != 0 && !call.checkDevice(address, shape.addressBytes(i))) {
                return false;
            }
        }
        return true;
    }

    /** Makes the library's objects of a content; null when the call has ended. */
    private Problem make(Call call, long handle, Content content) {
        CusparseLtShape shape = new CusparseLtShape(content);
        if (!shape.isKnown()) {
            call.fail(CUSPARSE_STATUS_INVALID_VALUE);
            return null;
        }
        if (!checkAddresses(call, shape, content.matmul())) {
            return null;
        }
        MemorySegment facts = Arena.ofAuto().allocate(HwsSltFacts.BYTES, Long.BYTES);
        Problem problem = new Problem(handle, shape, library.make(handle, content), facts);
        if (problem.status() == CUSPARSE_STATUS_SUCCESS) {
            problem.made.facts(facts);
            return problem;
        }
        call.fail(problem.status());
        problem.close();
        return null;
    }

    /** The library's objects of a content, made if there are none; null when the call has ended. */
    private Problem find(Call call, long handle, Content content) {
        MemorySegment key = problems.wanted();
        Handle context = objects.owningContext();
        key.set(ValueLayout.JAVA_LONG, 0, handle);
        key.set(ValueLayout.JAVA_LONG, Long.BYTES, context == null ? 0 : context.id());
        key.set(ValueLayout.JAVA_LONG, 2L * Long.BYTES, content.stage());
        long at = 3L * Long.BYTES;
        MemorySegment.copy(content.matmul(), 0, key, at, HwsSltMatmul.BYTES);
        at += HwsSltMatmul.BYTES;
        for (MemorySegment matrix : content.matrices()) {
            MemorySegment.copy(matrix, 0, key, at, HwsSltMatrix.BYTES);
            at += HwsSltMatrix.BYTES;
        }
        MemorySegment.copy(content.algorithm(), 0, key, at, HwsSltAlgorithm.BYTES);
        Problem found = problems.find();
        if (found != null) {
            // Memory that was the session's when the objects were made may have been freed.
            return checkAddresses(call, found.shape, content.matmul()) ? found : null;
        }
        Problem made = make(call, handle, copyOf(content));
        return made == null ? null : problems.findOrMake(() -> made);
    }

    private static Content copyOf(Content content) {
        MemorySegment[] matrices = new MemorySegment[CusparseLtShape.MATRICES];
        for (int i = 0; i < matrices.length; i++) {
            matrices[i] = copy(content.matrices()[i]);
        }
        return new Content(content.stage(), copy(content.matmul()), matrices, copy(content.algorithm()));
    }

    @Override
    public void hwsSltMake(Call call, MemorySegment owner, int stage, MemorySegment matmul, MemorySegment a,
        MemorySegment b, MemorySegment c, MemorySegment d, MemorySegment algorithm) {
        long handle = handle(call, owner, HwsSltOwner.HANDLE_OFFSET);
        if (call.isRejected()) {
            return;
        }
        Content content = content(call, stage, matmul, new MemorySegment[] {a, b, c, d}, algorithm);
        boolean isKept = stage == HwsSltStage.HWS_SLT_PLAN; // products follow; other stages are only asked for
        Problem problem = isKept ? find(call, handle, content) : make(call, handle, copyOf(content));
        if (problem != null) {
            PlanReplies.hwsSltMake(call.reply(), problem.facts);
            if (!isKept) {
                problem.close();
            }
            call.finish(CUSPARSE_STATUS_SUCCESS);
        }
    }

    /** A number, or a vector on the device whose extent is checked. The call has ended if it is wrong. */
    private static MemorySegment number(Call call, MemorySegment content, boolean isVector, CusparseLtShape shape) {
        MemorySegment number = LibraryNumbers.of(call, content, Float.BYTES, isVector);
        if (isVector && !call.isRejected()) {
            call.checkDevice(number.address(), shape.vectorBytes());
        }
        return number;
    }

    /** The checked arguments of a product; null when the call has ended. */
    private static Arguments arguments(Call call, Problem problem, MemorySegment target, MemorySegment alpha,
        MemorySegment beta, long[] matrices) {
        CusparseLtShape shape = problem.shape;
        MemorySegment first = number(call, alpha, shape.isAlphaVector(), shape);
        MemorySegment second = call.isRejected() ? first : number(call, beta, shape.isBetaVector(), shape);
        for (int i = 0; i < matrices.length && !call.isRejected(); i++) {
            boolean isAbsent = i == C && matrices[i] == 0; // where beta is 0
            if (!isAbsent) {
                call.checkDevice(matrices[i], i == shape.structured()
                    ? Math.max(problem.fact(HwsSltFacts.COMPRESSED_BYTES_OFFSET), 1) : shape.matrixBytes(i));
            }
        }
        long workspace = target.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsSltTarget.WORKSPACE_OFFSET);
        long needed = problem.fact(HwsSltFacts.WORKSPACE_BYTES_OFFSET);
        if (!call.isRejected() && workspace != 0) {
            call.checkDevice(workspace, Math.max(needed, 1));
        }
        int count = target.get(ValueLayout.JAVA_INT_UNALIGNED, HwsSltTarget.STREAM_COUNT_OFFSET);
        if (!call.isRejected() && (count < 0 || count > MAX_STREAMS)) {
            call.fatal("a product must have at most as many streams as its record: streams=" + count);
        }
        if (call.isRejected()) {
            return null;
        }
        MemorySegment streams = call.scratch((long) MAX_STREAMS * Long.BYTES);
        // Without streams, the record has that of the default. The first one is found last: the call counts for it.
        for (int i = Math.max(count, 1) - 1; i >= 0; i--) {
            streams.setAtIndex(ValueLayout.JAVA_LONG, i, call.handle(HandleKind.STREAM, target.get(
                ValueLayout.JAVA_LONG_UNALIGNED, HwsSltTarget.STREAMS_OFFSET + (long) i * Long.BYTES)));
        }
        return call.isRejected() ? null : new Arguments(first, second, matrices[0], matrices[1], matrices[C],
            matrices[D], workspace, streams, Math.max(count, 1));
    }

    @Override
    public void hwsSltMatmul(Call call, MemorySegment target, MemorySegment matmul, MemorySegment a, MemorySegment b,
        MemorySegment c, MemorySegment d, MemorySegment algorithm, MemorySegment alpha, MemorySegment beta, long dA,
        long dB, long dC, long dD) {
        long handle = handle(call, target, HwsSltTarget.HANDLE_OFFSET);
        Content content = content(call, HwsSltStage.HWS_SLT_PLAN, matmul, new MemorySegment[] {a, b, c, d},
            algorithm);
        Problem problem = call.isRejected() ? null : find(call, handle, content);
        Arguments arguments = problem == null ? null
            : arguments(call, problem, target, alpha, beta, new long[] {dA, dB, dC, dD});
        if (arguments != null) {
            call.countKernel();
            call.finish(problem.made.run(arguments));
        }
    }

    @Override
    public void hwsSltSearch(Call call, MemorySegment target, MemorySegment matmul, MemorySegment a, MemorySegment b,
        MemorySegment c, MemorySegment d, MemorySegment algorithm, MemorySegment alpha, MemorySegment beta, long dA,
        long dB, long dC, long dD) {
        long handle = handle(call, target, HwsSltTarget.HANDLE_OFFSET);
        if (!call.isRejected() && call.isCaptured()) { // a search measures time
            call.fail(CUSPARSE_STATUS_NOT_SUPPORTED);
        }
        Content content = content(call, HwsSltStage.HWS_SLT_PLAN, matmul, new MemorySegment[] {a, b, c, d},
            algorithm);
        // The search changes the plan, so it gets one of its own.
        Problem searched = call.isRejected() ? null : make(call, handle, copyOf(content));
        if (searched == null) {
            return;
        }
        Arguments arguments = arguments(call, searched, target, alpha, beta, new long[] {dA, dB, dC, dD});
        if (arguments != null) {
            MemorySegment found = call.scratch(HwsSltAlgorithm.BYTES);
            call.countKernel();
            int status = searched.made.search(arguments, found);
            if (status == CUSPARSE_STATUS_SUCCESS) {
                answer(call, handle, content, found);
            }
            call.finish(status);
        }
        searched.close();
    }

    /** Answers with the algorithm found, if a plan can be made with it; else with the one that the plan had. */
    private void answer(Call call, long handle, Content content, MemorySegment found) {
        Content changed = copyOf(new Content(content.stage(), content.matmul(), content.matrices(), found));
        MemorySegment facts = call.scratch(HwsSltFacts.BYTES).fill((byte) 0);
        if (!facts(handle, changed, facts)) {
            found.copyFrom(content.algorithm());
            facts(handle, copyOf(content), facts.fill((byte) 0));
        }
        MatmulReplies.hwsSltSearch(call.reply(), found, facts);
    }

    /** Whether the library makes a plan of a content, and what it tells of it. */
    private boolean facts(long handle, Content content, MemorySegment facts) {
        try (CusparseLtBackend.Made made = library.make(handle, content)) {
            if (made.status() == CUSPARSE_STATUS_SUCCESS) {
                made.facts(facts);
            }
            return made.status() == CUSPARSE_STATUS_SUCCESS;
        }
    }

    /** The stage whose objects a function works with; -1 for an unknown function. */
    private static int stage(int function) {
        return switch (function) {
            case HwsSltFunction.HWS_SLT_PRUNE, HwsSltFunction.HWS_SLT_CHECK -> HwsSltStage.HWS_SLT_MATMUL;
            case HwsSltFunction.HWS_SLT_PRUNE2, HwsSltFunction.HWS_SLT_CHECK2, HwsSltFunction.HWS_SLT_COMPRESS2 ->
                HwsSltStage.HWS_SLT_MATRIX;
            case HwsSltFunction.HWS_SLT_COMPRESS -> HwsSltStage.HWS_SLT_PLAN;
            default -> -1;
        };
    }

    @Override
    public void hwsSltChange(Call call, MemorySegment target, MemorySegment matmul, MemorySegment a, MemorySegment b,
        MemorySegment c, MemorySegment d, MemorySegment algorithm, MemorySegment work, long input, long output,
        long buffer) {
        long handle = handle(call, target, HwsSltTarget.HANDLE_OFFSET);
        long stream = call.isRejected() ? 0 : call.handle(HandleKind.STREAM,
            target.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsSltTarget.STREAMS_OFFSET));
        int function = work.get(ValueLayout.JAVA_INT_UNALIGNED, HwsSltWork.FUNCTION_OFFSET);
        if (!call.isRejected() && stage(function) < 0) {
            call.fatal("a function must be known: function=" + function);
        }
        Content content = content(call, stage(function), matmul, new MemorySegment[] {a, b, c, d}, algorithm);
        boolean isDense = content.stage() == HwsSltStage.HWS_SLT_MATRIX
            && a.get(ValueLayout.JAVA_INT_UNALIGNED, HwsSltMatrix.IS_STRUCTURED_OFFSET) == 0;
        if (!call.isRejected() && isDense) {
            call.fail(CUSPARSE_STATUS_INVALID_VALUE);
        }
        Problem problem = call.isRejected() ? null : find(call, handle, content);
        if (problem == null || !checkChange(call, problem, function, new long[] {input, output, buffer})) {
            return;
        }
        call.countKernel();
        call.finish(problem.made.change(new Change(function,
            work.get(ValueLayout.JAVA_INT_UNALIGNED, HwsSltWork.IS_SPARSE_A_OFFSET),
            work.get(ValueLayout.JAVA_INT_UNALIGNED, HwsSltWork.OP_OFFSET),
            work.get(ValueLayout.JAVA_INT_UNALIGNED, HwsSltWork.PRUNE_ALG_OFFSET), input, output, buffer, stream)));
    }

    /** Whether input, output and buffer lie in the session's memory. Ends the call if not. */
    private static boolean checkChange(Call call, Problem problem, int function, long[] addresses) {
        long dense = problem.shape.matrixBytes(problem.shape.structured());
        boolean compresses = function == HwsSltFunction.HWS_SLT_COMPRESS
            || function == HwsSltFunction.HWS_SLT_COMPRESS2;
        int sized = problem.facts.get(ValueLayout.JAVA_INT, HwsSltFacts.COMPRESSED_STATUS_OFFSET);
        if (compresses && sized != CUSPARSE_STATUS_SUCCESS) {
            call.fail(sized); // no size to check
            return false;
        }
        boolean prunes = function == HwsSltFunction.HWS_SLT_PRUNE || function == HwsSltFunction.HWS_SLT_PRUNE2;
        long outputBytes = compresses ? Math.max(problem.fact(HwsSltFacts.COMPRESSED_BYTES_OFFSET), 1)
            : prunes ? dense : Integer.BYTES;
        long bufferBytes = Math.max(problem.fact(HwsSltFacts.COMPRESS_BUFFER_BYTES_OFFSET), 1);
        return call.checkDevice(addresses[0], dense) && call.checkDevice(addresses[1], outputBytes)
            && (addresses[2] == 0 || call.checkDevice(addresses[2], bufferBytes));
    }
}
