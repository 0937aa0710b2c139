package io.hawser.worker.calls;

import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_ALLOC_FAILED;
import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_NOT_INITIALIZED;
import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_NOT_SUPPORTED;
import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_SUCCESS;

import io.hawser.cuda.backend.CusolverBackend;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.MathProvider;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cublas.HwsScalar;
import io.hawser.cuda.generated.cusolver.CusolverDispatcher;
import io.hawser.cuda.generated.cusolver.CusolverDriver;
import io.hawser.cuda.generated.cusolver.CusolverOpcodes;
import io.hawser.cuda.generated.cusolver.HandleManualCalls;
import io.hawser.cuda.generated.cusolver.HwsSolverHandle;
import io.hawser.cuda.generated.cusolver.HwsSolverJacobi;
import io.hawser.cuda.generated.cusolver.HwsSolverParams;
import io.hawser.cuda.generated.cusolver.HwsSolverSparse;
import io.hawser.cuda.generated.cusolver.SettingsManualCalls;
import io.hawser.cuda.generated.cusolver.SparseManualCalls;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.Session;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * cuSOLVER. The first call opens the machine's library. A call carries the state of its handle and the settings of its
 * objects; the library gets what has changed. Session thread.
 */
final class CusolverCalls
    implements LibraryCalls, HandleManualCalls<Call>, SettingsManualCalls<Call>, SparseManualCalls<Call> {
    /** Objects of Jacobi's method that a session has not destroyed: they take memory that no quota counts. */
    static final int MAX_OBJECTS = 65_536;
    private static final int ALGORITHMS = 4; // of HwsSolverParams: the library's own, and those of cusolverAlgMode_t
    private static final long ALIGNMENT = 16;
    private static final long STATE_OFFSET = HwsSolverHandle.DEVICE_OFFSET; // after the id and the stream
    private static final long SETTINGS_OFFSET = HwsSolverJacobi.TOLERANCE_OFFSET; // after the id

    private final GuestObjects objects;
    private final LibraryHandles handles;
    private final LibraryHandles sparseHandles;
    private final DescribedMatrices described = new DescribedMatrices();
    private final GpuBackend backend;
    private final Map<Integer, Long> params = new HashMap<>(); // by their algorithms; they stay until the session ends
    private final Map<Long, Jacobi> jacobis = new HashMap<>(); // by the guest's ids
    private CusolverBackend cusolver; // null while the library has not been opened, or is missing
    private CusolverDispatcher<Call> dispatcher;
    private Applied serving; // of the handle of the call in service

    /** What the library has for a handle. */
    private static final class Applied {
        private final MemorySegment content = Arena.ofAuto().allocate(HwsSolverHandle.BYTES, Long.BYTES);
        private final List<MemorySegment> workspaces = new ArrayList<>(); // work in a stream may still use older ones
        private boolean isSet;
        private long stream;

        boolean is(MemorySegment wanted, long wantedStream) {
            return isSet && stream == wantedStream && MemorySegment.mismatch(content, STATE_OFFSET,
                HwsSolverHandle.BYTES, wanted, STATE_OFFSET, HwsSolverHandle.BYTES) < 0;
        }

        void set(MemorySegment wanted, long wantedStream) {
            content.copyFrom(wanted);
            stream = wantedStream;
            isSet = true;
        }
    }

    /** The stream that the library has for a handle of sparse systems; a new handle has the default stream. */
    private static final class AppliedStream {
        private long stream;
    }

    /** An object of Jacobi's method, and the settings that it has. */
    private record Jacobi(long made, boolean isGesvdj, MemorySegment content) {
        boolean is(MemorySegment wanted) {
            return MemorySegment.mismatch(content, SETTINGS_OFFSET, HwsSolverJacobi.BYTES, wanted, SETTINGS_OFFSET,
                HwsSolverJacobi.BYTES) < 0;
        }
    }

    CusolverCalls(Session session) {
        this.objects = session.objects();
        LibraryHandles.Results results = new LibraryHandles.Results(CUSOLVER_STATUS_NOT_SUPPORTED,
            CUSOLVER_STATUS_NOT_INITIALIZED, CUSOLVER_STATUS_ALLOC_FAILED);
        this.handles = new LibraryHandles(objects, HandleKind.CUSOLVER, results, Applied::new);
        this.sparseHandles = new LibraryHandles(objects, HandleKind.CUSOLVER_SP, results, AppliedStream::new);
        this.backend = session.backend();
    }

    @Override
    public void dispatch(int opcode, Call call) {
        if (dispatcher == null) {
            cusolver = MathProviders.open(backend, MathProvider::cusolver);
            dispatcher = new CusolverDispatcher<>(cusolver == null ? new CusolverDriver() {} : cusolver.driver(), this,
                this, this);
        }
        if (opcode == CusolverOpcodes.cusolverSpDestroy
            && LibraryHandles.hasEnded(objects, HandleKind.CUSOLVER_SP, call.in())) {
            call.finish(CUSOLVER_STATUS_SUCCESS);
            return;
        }
        dispatcher.dispatch(call);
    }

    @Override
    public void cusolverDnCreate(Call call, long handleId) {
        handles.create(call, handleId, cusolver);
    }

    @Override
    public void cusolverDnDestroy(Call call, long handle, long handleId) {
        handles.destroy(call, handle, handleId, cusolver);
    }

    @Override
    public void cusolverSpCreate(Call call, long handleId) {
        sparseHandles.create(call, handleId, cusolver == null ? null : cusolver.sparse());
    }

    @Override
    public void cusolverSpDestroy(Call call, long handle, long handleId) {
        sparseHandles.destroy(call, handle, handleId, cusolver.sparse());
    }

    /** A call that names the object may have failed before the object was made. */
    @Override
    public void hwsSolverForget(Call call, long id) {
        Jacobi jacobi = jacobis.remove(id);
        call.finish(jacobi == null ? CUSOLVER_STATUS_SUCCESS : cusolver.destroyJacobi(jacobi.isGesvdj, jacobi.made));
    }

    @Override
    public MemorySegment object(Call call, String type, MemorySegment content) {
        if (cusolver == null) {
            call.fail(CUSOLVER_STATUS_NOT_SUPPORTED);
            return MemorySegment.NULL;
        }
        return MemorySegment.ofAddress(switch (type) {
            case "HwsSolverHandle" -> handle(call, content);
            case "HwsSolverParams" -> params(call, content);
            case "HwsSolverJacobi" -> jacobi(call, content);
            case "HwsSolverSparse" -> sparseHandle(call, content);
            case "HwsSparseMatDescr" -> described.of(call, content, cusolver);
            default -> throw new IllegalArgumentException("no such content: type=" + type);
        });
    }

    private long handle(Call call, MemorySegment content) {
        long made = call.handle(HandleKind.CUSOLVER, content.get(ValueLayout.JAVA_LONG_UNALIGNED,
            HwsSolverHandle.ID_OFFSET));
        if (call.isRejected()) {
            return 0;
        }
        Handle handle = call.lastObject();
        long stream = call.handle(HandleKind.STREAM, content.get(ValueLayout.JAVA_LONG_UNALIGNED,
            HwsSolverHandle.STREAM_OFFSET));
        if (call.isRejected()) {
            return 0;
        }
        serving = handle.info(Applied.class);
        if (!serving.is(content, stream)) {
            int status = cusolver.apply(made, content, stream);
            if (status != CUSOLVER_STATUS_SUCCESS) {
                call.fail(status);
                return 0;
            }
            serving.set(content, stream);
        }
        if (CusolverOpcodes.isCredited(call.in().opcode())) {
            call.countKernel();
        }
        return made;
    }

    private long sparseHandle(Call call, MemorySegment content) {
        long made = call.handle(HandleKind.CUSOLVER_SP, content.get(ValueLayout.JAVA_LONG_UNALIGNED,
            HwsSolverSparse.ID_OFFSET));
        if (call.isRejected()) {
            return 0;
        }
        AppliedStream applied = call.lastObject().info(AppliedStream.class);
        long stream = call.handle(HandleKind.STREAM, content.get(ValueLayout.JAVA_LONG_UNALIGNED,
            HwsSolverSparse.STREAM_OFFSET));
        if (call.isRejected()) {
            return 0;
        }
        if (applied.stream != stream) {
            int status = cusolver.applySparse(made, stream);
            if (status != CUSOLVER_STATUS_SUCCESS) {
                call.fail(status);
                return 0;
            }
            applied.stream = stream;
        }
        call.countKernel();
        return made;
    }

    /** The library's object with these algorithms: there are few, so each is made once. */
    private long params(Call call, MemorySegment content) {
        if (content.get(ValueLayout.JAVA_INT_UNALIGNED, HwsSolverParams.IS_NULL_OFFSET) != 0) {
            return 0;
        }
        int key = 0;
        for (long at = HwsSolverParams.ALGORITHMS_OFFSET; at < HwsSolverParams.BYTES; at += Integer.BYTES) {
            int algorithm = content.get(ValueLayout.JAVA_INT_UNALIGNED, at);
            if (algorithm < -1 || algorithm >= ALGORITHMS - 1) {
                call.fatal("an algorithm must be of cusolverAlgMode_t, or -1: algorithm=" + algorithm);
                return 0;
            }
            key = key * ALGORITHMS + algorithm + 1;
        }
        Long known = params.get(key);
        if (known != null) {
            return known;
        }
        MemorySegment out = call.scratch(Long.BYTES);
        int status = cusolver.createParams(content, out);
        if (status != CUSOLVER_STATUS_SUCCESS) {
            call.fail(status);
            return 0;
        }
        long made = out.get(ValueLayout.JAVA_LONG, 0);
        params.put(key, made);
        return made;
    }

    private long jacobi(Call call, MemorySegment content) {
        long id = content.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsSolverJacobi.ID_OFFSET);
        if (id == 0) {
            return 0;
        }
        boolean isGesvdj = content.get(ValueLayout.JAVA_INT_UNALIGNED, HwsSolverJacobi.IS_GESVDJ_OFFSET) != 0;
        Jacobi jacobi = jacobis.get(id);
        if (jacobi == null) {
            jacobi = make(call, id, isGesvdj);
            if (jacobi == null) {
                return 0;
            }
        }
        if (jacobi.isGesvdj != isGesvdj || isGesvdj != isForGesvdj(call.in().opcode())) {
            call.fatal("an object of Jacobi's method must have the kind of the call: id=" + id);
            return 0;
        }
        if (!jacobi.is(content)) {
            int status = cusolver.configure(isGesvdj, jacobi.made, content);
            if (status != CUSOLVER_STATUS_SUCCESS) {
                call.fail(status);
                return 0;
            }
            jacobi.content.copyFrom(content);
        }
        return jacobi.made;
    }

    private Jacobi make(Call call, long id, boolean isGesvdj) {
        MemorySegment out = call.scratch(Long.BYTES);
        int status = jacobis.size() >= MAX_OBJECTS ? CUSOLVER_STATUS_ALLOC_FAILED
            : cusolver.createJacobi(isGesvdj, out);
        if (status != CUSOLVER_STATUS_SUCCESS) {
            call.fail(status);
            return null;
        }
        MemorySegment none = Arena.ofAuto().allocate(HwsSolverJacobi.BYTES, Long.BYTES);
        none.set(ValueLayout.JAVA_INT, HwsSolverJacobi.IS_GESVDJ_OFFSET, isGesvdj ? 1 : 0);
        Jacobi jacobi = new Jacobi(out.get(ValueLayout.JAVA_LONG, 0), isGesvdj, none);
        jacobis.put(id, jacobi);
        return jacobi;
    }

    /** Whether a function takes a gesvdjInfo_t. */
    private static boolean isForGesvdj(int opcode) {
        return CusolverOpcodes.name(opcode).contains("gesvdj");
    }

    /** A number on the host, with the size of its type. */
    @Override
    public MemorySegment number(Call call, MemorySegment content, long bytes) {
        int stated = content.get(ValueLayout.JAVA_INT_UNALIGNED, HwsScalar.VALUE_BYTES_OFFSET);
        if (stated <= 0 || stated != bytes || content.get(ValueLayout.JAVA_INT_UNALIGNED,
            HwsScalar.ON_DEVICE_OFFSET) != 0) {
            call.fatal("a number lies on the host and has its type's size: bytes=" + stated + " typeBytes=" + bytes);
            return MemorySegment.NULL;
        }
        return LibraryNumbers.aligned(call, content.asSlice(HwsScalar.VALUE_OFFSET));
    }

    /** Grows by more than a half, so that the older ones take no more memory than twice the last one. */
    @Override
    public MemorySegment workspace(Call call, long bytes) {
        if (bytes == 0) {
            return MemorySegment.NULL;
        }
        List<MemorySegment> all = serving.workspaces;
        long last = all.isEmpty() ? 0 : all.getLast().byteSize();
        if (bytes > last) {
            all.add(Arena.ofAuto().allocate(Math.max(bytes, last + last / 2), ALIGNMENT));
        }
        return all.getLast();
    }
}
