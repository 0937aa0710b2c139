package io.hawser.worker.calls;

import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_ALLOC_FAILED;
import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_NOT_INITIALIZED;
import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_NOT_SUPPORTED;
import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_SUCCESS;
import static io.hawser.cuda.generated.cusparse.cusparseStatus_t.CUSPARSE_STATUS_ZERO_PIVOT;

import io.hawser.cuda.backend.CusparseBackend;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.MathProvider;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cusparse.CusparseDispatcher;
import io.hawser.cuda.generated.cusparse.CusparseDriver;
import io.hawser.cuda.generated.cusparse.FactorManualCalls;
import io.hawser.cuda.generated.cusparse.FactorReplies;
import io.hawser.cuda.generated.cusparse.HandleManualCalls;
import io.hawser.cuda.generated.cusparse.HandleReplies;
import io.hawser.cuda.generated.cusparse.HwsSparseHandle;
import io.hawser.cuda.generated.cusparse.cusparsePointerMode_t;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.Session;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;

/**
 * cuSPARSE: handles and the older functions. The first call opens the machine's library. A call carries the state of
 * its handle, which the library gets when it has changed. Session thread.
 */
final class CusparseCalls implements LibraryCalls, HandleManualCalls<Call>, FactorManualCalls<Call> {
    private static final int DEVICE = cusparsePointerMode_t.CUSPARSE_POINTER_MODE_DEVICE;
    private static final Map<Integer, HandleKind> INFOS = Map.of(HandleKind.CSRIC02.number(), HandleKind.CSRIC02,
        HandleKind.CSRILU02.number(), HandleKind.CSRILU02, HandleKind.BSRIC02.number(), HandleKind.BSRIC02,
        HandleKind.BSRILU02.number(), HandleKind.BSRILU02, HandleKind.BSRSV2.number(), HandleKind.BSRSV2,
        HandleKind.BSRSM2.number(), HandleKind.BSRSM2);

    private final LibraryHandles handles;
    private final GpuBackend backend;
    private final DescribedMatrices described = new DescribedMatrices();
    private CusparseBackend cusparse; // null while the library has not been opened, or is missing
    private CusparseDispatcher<Call> dispatcher;
    private int pointerMode; // of the call in service

    /** The state that the library has for a handle. */
    private static final class Applied {
        private int pointerMode;
        private long stream; // a new handle has the default stream
    }

    CusparseCalls(Session session) {
        this.handles = new LibraryHandles(session.objects(), HandleKind.CUSPARSE, new LibraryHandles.Results(
            CUSPARSE_STATUS_NOT_SUPPORTED, CUSPARSE_STATUS_NOT_INITIALIZED, CUSPARSE_STATUS_ALLOC_FAILED),
            Applied::new);
        this.backend = session.backend();
    }

    @Override
    public void dispatch(int opcode, Call call) {
        if (dispatcher == null) {
            cusparse = MathProviders.open(backend, MathProvider::cusparse);
            CusparseGeneric generic = new CusparseGeneric(this, cusparse);
            dispatcher = new CusparseDispatcher<>(cusparse == null ? new CusparseDriver() {} : cusparse.driver(), this,
                generic, generic, this);
        }
        dispatcher.dispatch(call);
    }

    @Override
    public void cusparseCreate(Call call, long handleId) {
        handles.create(call, handleId, cusparse);
    }

    @Override
    public void cusparseDestroy(Call call, long handle, long handleId) {
        handles.destroy(call, handle, handleId, cusparse);
    }

    @Override
    public void hwsSparseVersion(Call call) {
        MemorySegment version = call.scratch(Integer.BYTES);
        int status = cusparse == null ? CUSPARSE_STATUS_NOT_SUPPORTED : cusparse.version(version);
        if (status == CUSPARSE_STATUS_SUCCESS) {
            HandleReplies.hwsSparseVersion(call.reply(), version.get(ValueLayout.JAVA_INT, 0));
        }
        call.finish(status);
    }

    @Override
    public MemorySegment object(Call call, String type, MemorySegment content) {
        return type.equals("HwsSparseHandle") ? MemorySegment.ofAddress(handle(call, content))
            : MemorySegment.ofAddress(description(call, content));
    }

    /** The library's handle of a call, with its state. The call has ended if it is wrong. */
    long handle(Call call, MemorySegment content) {
        if (cusparse == null) {
            call.fail(CUSPARSE_STATUS_NOT_SUPPORTED);
            return 0;
        }
        long made = call.handle(HandleKind.CUSPARSE, content.get(ValueLayout.JAVA_LONG_UNALIGNED,
            HwsSparseHandle.ID_OFFSET));
        Handle handle = call.lastObject();
        long stream = call.handle(HandleKind.STREAM, content.get(ValueLayout.JAVA_LONG_UNALIGNED,
            HwsSparseHandle.STREAM_OFFSET));
        pointerMode = content.get(ValueLayout.JAVA_INT_UNALIGNED, HwsSparseHandle.POINTER_MODE_OFFSET);
        if (call.isRejected()) {
            return 0;
        }
        if (pointerMode < 0 || pointerMode > DEVICE) {
            call.fatal("a pointer mode must be that of the host or the device: pointerMode=" + pointerMode);
            return 0;
        }
        Applied applied = handle.info(Applied.class);
        if (applied.stream != stream || applied.pointerMode != pointerMode) {
            int status = cusparse.apply(made, pointerMode, stream);
            if (status != CUSPARSE_STATUS_SUCCESS) {
                call.fail(status);
                return 0;
            }
            applied.stream = stream;
            applied.pointerMode = pointerMode;
        }
        call.countKernel();
        return made;
    }

    private long description(Call call, MemorySegment content) {
        if (cusparse == null) {
            call.fail(CUSPARSE_STATUS_NOT_SUPPORTED);
            return 0;
        }
        return described.of(call, content, cusparse);
    }

    @Override
    public MemorySegment number(Call call, MemorySegment content, long bytes) {
        return LibraryNumbers.of(call, content, bytes, isDeviceMode());
    }

    /** Whether the numbers of the call in service lie on the device. */
    boolean isDeviceMode() {
        return pointerMode == DEVICE;
    }

    @Override
    public void hwsSparseZeroPivot(Call call, MemorySegment handle, int kind, long info) {
        long made = handle(call, handle);
        Handle owner = call.lastObject();
        HandleKind infos = INFOS.get(kind);
        if (call.isRejected()) {
            return;
        }
        if (infos == null) {
            call.fatal("an info must be of a known kind: kind=" + kind);
            return;
        }
        long found = call.handle(infos, info);
        if (call.isRejected()) {
            return;
        }
        MemorySegment position = call.scratch(Integer.BYTES);
        position.set(ValueLayout.JAVA_INT, 0, -1);
        int status = cusparse.zeroPivot(infos, made, found, position);
        owner.info(Applied.class).pointerMode = cusparsePointerMode_t.CUSPARSE_POINTER_MODE_HOST;
        if (status == CUSPARSE_STATUS_SUCCESS || status == CUSPARSE_STATUS_ZERO_PIVOT) {
            FactorReplies.hwsSparseZeroPivot(call.reply(), position.get(ValueLayout.JAVA_INT, 0));
            status = CUSPARSE_STATUS_SUCCESS; // the position tells the guest
        }
        call.finish(status);
    }
}
