package io.hawser.worker.session;

import io.hawser.cuda.generated.HandleKind;
import io.netty.util.collection.IntObjectHashMap;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Finds a call's stream. The per-thread default stream is a real stream for each guest thread and context, created at
 * its first use. Session thread only.
 */
public final class StreamTable {
    /** CU_STREAM_LEGACY of cuda.h. */
    public static final long LEGACY = 1;
    /** CU_STREAM_PER_THREAD of cuda.h. */
    public static final long PER_THREAD = 2;

    /** Guest threads with a default stream; each costs a stream in the backend. */
    private static final int MAX_THREADS = 4096;

    /** Creates streams in the current context. */
    @FunctionalInterface
    public interface Maker {
        /**
         * Creates a stream that synchronises with the legacy default stream.
         *
         * @param out receives the native handle.
         * @return CUresult.
         */
        int create(MemorySegment out);
    }

    /** The default streams of one context. */
    private static final class Defaults {
        final StreamState legacy;
        final IntObjectHashMap<StreamState> byThread = new IntObjectHashMap<>();

        Defaults(long context) {
            legacy = new StreamState(context, 0);
        }
    }

    private final GuestObjects objects;
    private final Maker maker;
    private final Map<Handle, Defaults> defaults = new HashMap<>();
    private Handle lastContext;
    private Defaults lastDefaults;

    /**
     * Makes an empty table.
     *
     * @param objects has the current context.
     * @param maker creates per-thread streams.
     */
    StreamTable(GuestObjects objects, Maker maker) {
        this.objects = objects;
        this.maker = maker;
    }

    /** Finds a stream; null when this has ended the call. */
    StreamState resolve(Call call, long id) {
        if (id > PER_THREAD || id < 0) {
            Handle handle = call.object(HandleKind.STREAM, id);
            return handle == null ? null : handle.info(StreamState.class);
        }
        Handle context = objects.currentContext();
        if (context == null) {
            call.fail(CudaResult.INVALID_CONTEXT);
            return null;
        }
        if (context != lastContext) {
            lastDefaults = defaults.computeIfAbsent(context, made -> new Defaults(made.nativeHandle()));
            lastContext = context;
        }
        return id == PER_THREAD ? perThread(call, lastDefaults) : lastDefaults.legacy;
    }

    private StreamState perThread(Call call, Defaults of) {
        StreamState known = of.byThread.get(call.thread());
        if (known != null) {
            return known;
        }
        if (of.byThread.size() >= MAX_THREADS) {
            call.fail(CudaResult.OUT_OF_MEMORY);
            return null;
        }
        MemorySegment out = call.scratch(Long.BYTES);
        int result = maker.create(out);
        if (result != 0) {
            call.fail(result);
            return null;
        }
        StreamState made = new StreamState(of.legacy.context(), out.get(ValueLayout.JAVA_LONG, 0));
        of.byThread.put(call.thread(), made);
        return made;
    }

    /**
     * The streams of a context. They are the guest's own streams and the default streams that it has used.
     *
     * @param context its handle.
     * @return a new list.
     */
    public List<StreamState> of(Handle context) {
        List<StreamState> streams = new ArrayList<>();
        Defaults used = defaults.get(context);
        if (used != null) {
            streams.add(used.legacy);
            streams.addAll(used.byThread.values());
        }
        for (Handle handle : objects.handles().all(HandleKind.STREAM)) {
            if (handle.owner() == context && handle.nativeHandle() != 0) {
                streams.add(handle.info(StreamState.class));
            }
        }
        return streams;
    }

    /**
     * Removes the default streams of a context, which the backend destroys with it.
     *
     * @param context its handle.
     * @return its default streams.
     */
    List<StreamState> forget(Handle context) {
        Defaults gone = defaults.remove(context);
        if (context == lastContext) {
            lastContext = null;
            lastDefaults = null;
        }
        List<StreamState> streams = new ArrayList<>();
        if (gone != null) {
            streams.add(gone.legacy);
            streams.addAll(gone.byThread.values());
        }
        return streams;
    }
}
