package io.hawser.worker.calls;

import io.hawser.cuda.backend.CublasBackend;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.MathProvider;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cublas.CublasDispatcher;
import io.hawser.cuda.generated.cublas.CublasDriver;
import io.hawser.cuda.generated.cublas.HandleManualCalls;
import io.hawser.cuda.generated.cublas.HwsCublasHandle;
import io.hawser.cuda.generated.cublas.cublasPointerMode_t;
import io.hawser.cuda.generated.cublas.cublasStatus_t;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.Session;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * cuBLAS. The first call opens the machine's library. A call carries the state that the guest keeps for its handle,
 * which the library gets when it has changed. Session thread.
 */
final class CublasCalls implements LibraryCalls, HandleManualCalls<Call> {
    private static final long STATE_OFFSET = HwsCublasHandle.WORKSPACE_OFFSET; // after the id and the stream

    private final LibraryHandles handles;
    private final GpuBackend backend;
    private CublasBackend cublas; // null while the library has not been opened, or is missing
    private CublasDispatcher<Call> dispatcher;
    private int pointerMode; // of the call in service

    /** The state that the library has for a handle. */
    private static final class Applied {
        private final MemorySegment content = Arena.ofAuto().allocate(HwsCublasHandle.BYTES, Long.BYTES);
        private boolean isSet;
        private long stream;

        boolean is(MemorySegment wanted, long wantedStream) {
            return isSet && stream == wantedStream && MemorySegment.mismatch(content, STATE_OFFSET,
                HwsCublasHandle.BYTES, wanted, STATE_OFFSET, HwsCublasHandle.BYTES) < 0;
        }

        void set(MemorySegment wanted, long wantedStream) {
            content.copyFrom(wanted);
            stream = wantedStream;
            isSet = true;
        }
    }

    CublasCalls(Session session) {
        this.handles = new LibraryHandles(session.objects(), HandleKind.CUBLAS, new LibraryHandles.Results(
            cublasStatus_t.CUBLAS_STATUS_NOT_SUPPORTED, cublasStatus_t.CUBLAS_STATUS_NOT_INITIALIZED,
            cublasStatus_t.CUBLAS_STATUS_ALLOC_FAILED), Applied::new);
        this.backend = session.backend();
    }

    @Override
    public void dispatch(int opcode, Call call) {
        if (dispatcher == null) {
            cublas = MathProviders.open(backend, MathProvider::cublas);
            dispatcher = new CublasDispatcher<>(cublas == null ? new CublasDriver() {} : cublas.driver(), this);
        }
        dispatcher.dispatch(call);
    }

    @Override
    public void cublasCreate_v2(Call call, long handleId) {
        handles.create(call, handleId, cublas);
    }

    @Override
    public void cublasDestroy_v2(Call call, long handle, long handleId) {
        handles.destroy(call, handle, handleId, cublas);
    }

    @Override
    public MemorySegment object(Call call, String type, MemorySegment content) {
        if (!type.equals("HwsCublasHandle")) {
            throw new IllegalArgumentException("no such content: type=" + type);
        }
        return handle(call, content);
    }

    @Override
    public MemorySegment number(Call call, MemorySegment content, long bytes) {
        return LibraryNumbers.of(call, content, bytes,
            pointerMode == cublasPointerMode_t.CUBLAS_POINTER_MODE_DEVICE);
    }

    private MemorySegment handle(Call call, MemorySegment content) {
        long made = call.handle(HandleKind.CUBLAS, content.get(ValueLayout.JAVA_LONG_UNALIGNED,
            HwsCublasHandle.ID_OFFSET));
        Handle handle = call.lastObject();
        pointerMode = content.get(ValueLayout.JAVA_INT_UNALIGNED, HwsCublasHandle.POINTER_MODE_OFFSET);
        long stream = call.handle(HandleKind.STREAM, content.get(ValueLayout.JAVA_LONG_UNALIGNED,
            HwsCublasHandle.STREAM_OFFSET));
        if (call.isRejected() || !call.checkDevice(
            content.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsCublasHandle.WORKSPACE_OFFSET),
            content.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsCublasHandle.WORKSPACE_BYTES_OFFSET))) {
            return MemorySegment.NULL;
        }
        Applied applied = handle.info(Applied.class);
        if (!applied.is(content, stream)) {
            int status = cublas.apply(made, content, stream);
            if (status != 0) {
                call.fail(status);
                return MemorySegment.NULL;
            }
            applied.set(content, stream);
        }
        call.countKernel();
        return MemorySegment.ofAddress(made);
    }
}
