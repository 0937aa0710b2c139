package io.hawser.cuda;

import io.hawser.cuda.generated.HandleKind;
import io.hawser.shm.wire.RecordReader;
import io.hawser.shm.wire.RecordWriter;
import java.lang.foreign.MemorySegment;

/**
 * One request in service. The worker creates it. The generated dispatcher and the manual calls use it, on the decoder's
 * thread until {@link #defer}.
 *
 * <p>A call ends exactly once: by {@link #finish}, {@link #fail} or {@link #fatal}. The checks {@link #handle} and
 * {@link #checkDevice} may end the call. After a check, the caller tests {@link #isRejected} and returns if it is true.
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
     * Resolves a handle of the guest. {@link HandleKind#STREAM} accepts 0, 1 and 2: CUDA's default, legacy and
     * per-thread stream. They resolve to the backend's values for them; 2 depends on {@link #thread}. Every other kind
     * rejects 0: where the description allows NULL, generated code passes it on without this call.
     *
     * @param kind the kind that the function requires.
     * @param id the guest's id, {@code kind << 40 | number}.
     * @return the native handle, or 0 when rejected. An id that was never created or has another kind is {@link
     *     #fatal}. A destroyed handle, or one whose creation failed, {@link #fail}s with {@code
     *     CUDA_ERROR_INVALID_HANDLE} ({@code CUDA_ERROR_INVALID_CONTEXT} for a context).
     */
    long handle(HandleKind kind, long id);

    /** Stores the native handle of the guest's {@code id}; an id that is already in use is fatal. */
    void register(HandleKind kind, long id, long nativeHandle);

    /** Records that the creation of {@code id} failed, so that calls already on their way fail as in CUDA. */
    void registerFailed(HandleKind kind, long id);

    /** Removes a destroyed handle; later uses fail with {@code CUDA_ERROR_INVALID_HANDLE}. */
    void drop(HandleKind kind, long id);

    /**
     * Checks that a range of device memory lies inside one allocation of this session. Otherwise the call {@link
     * #fail}s with {@code CUDA_ERROR_INVALID_VALUE}. A range of 0 bytes passes.
     *
     * @return whether the range passes.
     */
    boolean checkDevice(long address, long bytes);

    /**
     * Resolves the content of an object that the guest keeps.
     *
     * @param type the structure of the content.
     * @param content the structure, in the request.
     * @return the argument of the backend; undefined when rejected. If the object describes device memory, its length
     *     is that memory's size.
     */
    MemorySegment object(String type, MemorySegment content);

    /**
     * Resolves a number behind a pointer.
     *
     * @param content the structure HwsScalar or HwsScalars.
     * @param bytes size of the number's type; 0 for a type that no honest guest sends.
     * @return the number, inside of {@code content} or copied, aligned to 16 if its type has 16 bytes; a segment
     *     without bytes at its address on the device. Undefined when rejected.
     */
    MemorySegment number(MemorySegment content, long bytes);

    /**
     * Host memory that a library works in, aligned to 16. It stays with the call's handle, so work that the call leaves
     * in its stream may use it; later calls with this handle use it as well.
     *
     * @return a segment of at least these bytes; {@link MemorySegment#NULL} for 0.
     */
    MemorySegment workspace(long bytes);

    /** States that the call's results are those of another library than the driver: what rejecting checks report. */
    void answerIn(int invalidValue, int invalidHandle);

    /** Ends the call with an error, never 0: the reply's status, or the session's deferred error. */
    void fail(int cuResult);

    /** Ends the session: no honest guest library sends this record. */
    void fatal(String reason);

    /** Whether a check has ended the call. */
    boolean isRejected();

    /** Zeroed private native memory, aligned to 16, valid until the call ends. */
    MemorySegment scratch(long bytes);

    /** The reply's payload, after the header; only {@code finish(0)} sends the written values. */
    RecordWriter reply();

    /**
     * Ends the call. If the guest wants a reply, it is sent, with outputs only when {@code cuResult} is 0. Otherwise an
     * error becomes the session's deferred error.
     */
    void finish(int cuResult);

    /** States that the call will end later, from any thread; {@link #in} and {@link #scratch} stay valid until then. */
    void defer();
}
