package io.hawser.worker.calls;

import io.hawser.cuda.backend.MathHandles;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.shm.wire.RecordReader;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.MemoryQuota;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.Supplier;

/** The handles of a math library: each counts its memory on the quota. Session thread. */
final class LibraryHandles {
    private final GuestObjects objects;
    private final HandleKind kind;
    private final Results results;
    private final Supplier<Object> info;

    /**
     * The library's own results.
     *
     * @param notSupported the machine has no such library.
     * @param notInitialized the thread has no context.
     * @param outOfMemory the quota has no room.
     */
    record Results(int notSupported, int notInitialized, int outOfMemory) {
    }

    /**
     * @param objects of the session.
     * @param kind of the handles.
     * @param results of the library.
     * @param info makes what is kept for a handle; null is nothing.
     */
    LibraryHandles(GuestObjects objects, HandleKind kind, Results results, Supplier<Object> info) {
        this.objects = objects;
        this.kind = kind;
        this.results = results;
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
            return library == null ? results.notSupported : results.notInitialized;
        }
        MemoryQuota.Charge charge = objects.quota().claim(objects.deviceOf(context), library.handleBytes());
        if (charge == null) {
            return results.outOfMemory;
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

    /**
     * Whether the object that a record destroys has ended with its context. A program may destroy it all the same, and
     * nobody awaits the result: a failure would show in an unrelated call.
     *
     * @param in the record; its first field is the object's id, and what follows is left to its decoder.
     */
    static boolean hasEnded(GuestObjects objects, HandleKind kind, RecordReader in) {
        in.begin(Long.BYTES);
        long id = in.i64(0);
        return !in.isMalformed() && objects.handles().find(kind, id) == null && objects.handles().wasCreated(kind, id);
    }
}
