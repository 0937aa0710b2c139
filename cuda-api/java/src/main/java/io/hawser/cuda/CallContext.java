package io.hawser.cuda;

import io.hawser.cuda.generated.HandleKind;
import io.hawser.shm.RecordReader;
import io.hawser.shm.RecordWriter;
import java.lang.foreign.MemorySegment;

/**
 * One request that is being served. The worker makes it; the generated dispatcher and the manual calls use it, on the
 * decoder's thread until {@link #defer}.
 *
 * <p>A call ends exactly once: by {@link #finish}, {@link #fail} or {@link #fatal}. After a check that may reject
 * ({@link #handle}, {@link #checkDevice}), a caller asks {@link #isRejected} and returns: the call has ended already.
 */
public interface CallContext {
    /** The request, in private memory; valid until the call ends. */
    RecordReader in();

    /** Guest thread number, from 1. */
    int thread();

    /** Id of the calling thread's current context; 0 for none. */
    int context();

    /** Sequence number of the request. */
    long sequence();

    /** Whether the guest waits for a reply. */
    boolean wantsReply();

    /**
     * Resolves a handle of the guest. 0 is not accepted here (generated code passes a NULL that the description allows
     * without asking), except for {@link HandleKind#STREAM}: 0, 1 and 2 are CUDA's default, legacy and per-thread
     * stream and resolve to what the backend takes for them; 2 depends on {@link #thread}.
     *
     * @param kind what the function wants.
     * @param id what the guest sent, {@code kind << 40 | number}.
     * @return the native handle, or 0 when rejected: an id that was never created, or of another kind, is
     *     {@link #fatal}; one that is destroyed, or whose creation failed, {@link #fail}s with
     *     {@code CUDA_ERROR_INVALID_HANDLE} ({@code CUDA_ERROR_INVALID_CONTEXT} for a context).
     */
    long handle(HandleKind kind, long id);

    /** Stores the native handle that the guest's {@code id} names from now on; an id already in use is fatal. */
    void register(HandleKind kind, long id, long nativeHandle);

    /** Remembers that the creation of {@code id} failed, so that calls already on their way fail as CUDA's would. */
    void registerFailed(HandleKind kind, long id);

    /** Forgets a handle after its destruction; later uses fail with {@code CUDA_ERROR_INVALID_HANDLE}. */
    void drop(HandleKind kind, long id);

    /**
     * Checks that a range of device memory lies inside one allocation of this session; if not, the call {@link #fail}s
     * with {@code CUDA_ERROR_INVALID_VALUE}. A range of 0 bytes passes.
     *
     * @return whether it does.
     */
    boolean checkDevice(long address, long bytes);

    /** Ends the call with an error, never 0: the reply's status, or the session's deferred error. */
    void fail(int cuResult);

    /** Ends the session: this record is one that no honest guest library sends. */
    void fatal(String reason);

    /** Whether a check has ended the call. */
    boolean isRejected();

    /** Zeroed private native memory, aligned to 8, valid until the call ends. */
    MemorySegment scratch(long bytes);

    /** The reply's payload, its header begun; what is written is sent only by {@code finish(0)}. */
    RecordWriter reply();

    /**
     * Ends the call. If a reply is wanted it is sent: outputs only when {@code cuResult} is 0. If none is wanted an
     * error becomes the session's deferred error.
     */
    void finish(int cuResult);

    /** States that the call will end later, from any thread; {@link #in} and {@link #scratch} stay valid until then. */
    void defer();
}
