package io.hawser.worker.calls;

import io.hawser.cuda.backend.MathHandles;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cublas.cublasStatus_t;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.MemoryQuota;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.Supplier;

/** The handles of cuBLAS or of cublasLt: each counts its memory on the quota. Session thread. */
final class CublasHandles {
    private final GuestObjects objects;
    private final HandleKind kind;
    private final Supplier<Object> info;

    /**
     * @param objects of the session.
     * @param kind of the handles.
     * @param info makes what is kept for a handle; null is nothing.
     */
    CublasHandles(GuestObjects objects, HandleKind kind, Supplier<Object> info) {
        this.objects = objects;
        this.kind = kind;
        this.info = info;
    }

    /** Creates a handle and ends the call; {@code library} is null when the machine has none. */
    void create(Call call, long id, MathHandles library) {
        int status = made(call, id, library);
        if (status != 0) {
            call.registerFailed(kind, id);
        }
        call.finish(status);
    }

    private int made(Call call, long id, MathHandles library) {
        Handle context = objects.owningContext();
        if (library == null || context == null) {
            return library == null ? cublasStatus_t.CUBLAS_STATUS_NOT_SUPPORTED
                : cublasStatus_t.CUBLAS_STATUS_NOT_INITIALIZED;
        }
        MemoryQuota.Charge charge = objects.quota().claim(objects.deviceOf(context), library.handleBytes());
        if (charge == null) {
            return cublasStatus_t.CUBLAS_STATUS_ALLOC_FAILED;
        }
        MemorySegment out = call.scratch(Long.BYTES);
        int status = library.create(out);
        if (status != 0) {
            charge.giveBack();
            return status;
        }
        long made = out.get(ValueLayout.JAVA_LONG, 0);
        objects.register(call, kind, id, made, context, info.get());
        if (call.isRejected()) {
            charge.giveBack();
            return library.destroy(made);
        }
        objects.keepCharge(objects.handles().find(kind, id), charge);
        return 0;
    }

    /** Destroys a handle and ends the call. */
    void destroy(Call call, long handle, long id, MathHandles library) {
        int status = library.destroy(handle);
        call.drop(kind, id);
        call.finish(status);
    }
}
