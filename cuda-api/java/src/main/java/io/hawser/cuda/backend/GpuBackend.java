package io.hawser.cuda.backend;

import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.CudaDriver;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.IntConsumer;

/**
 * A GPU as one worker uses it. Methods that return {@code int} answer a CUresult and never throw for what a guest may
 * cause. Calls come from the decoder's thread in the guest's order, except where a method says otherwise; none blocks.
 * Handles are the backend's own, never a guest's ids. Streams: 0 is the legacy default stream of the current context.
 */
public interface GpuBackend extends AutoCloseable {
    /** {@code software} or {@code nvidia}. */
    String name();

    /** The Driver API on this GPU. */
    CudaDriver driver();

    /** Number of devices that this backend offers. */
    int deviceCount();

    /**
     * Describes a device.
     *
     * @param ordinal from 0.
     * @param hwsDeviceInfo receives the struct {@code HwsDeviceInfo}.
     */
    int deviceInfo(int ordinal, MemorySegment hwsDeviceInfo);

    /** Makes a context; {@code out} receives its native handle (8 bytes). A primary one is made once a device. */
    int createContext(int device, int flags, boolean primary, MemorySegment out);

    /** Destroys a context and all that it holds. */
    int destroyContext(long nativeContext);

    /** Makes a context current for the calls that follow; 0 for none. */
    int setCurrent(long nativeContext);

    /**
     * Runs an action once all work issued so far to a stream is done or has failed; the action gets the CUresult, on
     * any thread, and must not block. The action has returned before anything that was issued behind the same work,
     * in whatever stream waits for it, is reported by this or the next two methods.
     *
     * @param context the stream's context, which matters for stream 0.
     */
    int whenStreamReached(long context, long stream, IntConsumer action);

    /** As {@link #whenStreamReached} for all streams of a context. */
    int whenContextReached(long context, IntConsumer action);

    /** As {@link #whenStreamReached} for the work that an event has recorded; at once if it never was recorded. */
    int whenEventReached(long event, IntConsumer action);

    /**
     * Looks for ends of work, in a backend that has to ask, and runs the actions that are due. Session thread; waits
     * for nothing.
     *
     * @return whether an action was run.
     */
    default boolean poll() {
        return false;
    }

    /**
     * Says whether the session thread calls {@link #poll} often from now on, until it says otherwise. While it does
     * not, as before the first call of this, the backend looks by itself.
     */
    default void polled(boolean polled) {
    }

    /** Whether a session thread with nothing to do should rather go on to poll than sleep. */
    default boolean isWorthPolling() {
        return false;
    }

    /**
     * Something may be issued from now on that is not meant by the calls of {@link #whenStreamReached} and its like so
     * far. Session thread, before each request.
     */
    default void seal() {
    }

    /** Runs a function in stream order; it may block, and the stream goes on when it returns. */
    int hostFunction(long stream, Runnable function);

    /**
     * Launches a kernel.
     *
     * @param flags bit 0: cooperative.
     * @param packedParams parameters at the offsets that {@link #function} gave; read before this returns.
     * @param attributes array of CUlaunchAttribute, may be empty; read before this returns.
     */
    int launch(long function, int gridX, int gridY, int gridZ, int blockX, int blockY, int blockZ, int sharedBytes,
            long stream, int flags, MemorySegment packedParams, MemorySegment attributes);

    /**
     * Loads device code.
     *
     * @param image cubin, PTX text or fat binary, whole.
     * @param out receives the native module (8 bytes).
     * @param log receives what the compiler has to say.
     */
    int loadImage(MemorySegment image, MemorySegment out, StringBuilder log);

    /**
     * Loads device code that belongs to no context: its functions can be launched in each, and each has variables of
     * its own. The handle serves where a module's does; {@link #global} answers for the current context.
     *
     * @param image as for {@link #loadImage}.
     * @param out receives the native handle (8 bytes).
     * @param log as for {@link #loadImage}.
     */
    default int loadLibrary(MemorySegment image, MemorySegment out, StringBuilder log) {
        return loadImage(image, out, log);
    }

    /**
     * Device memory that code will take in each context that uses it, for its variables above all.
     *
     * @param image as for {@link #loadImage}, of any content.
     * @return bytes, 0 or more; 0 where {@link #codeBytes} tells.
     */
    default long imageBytes(MemorySegment image) {
        return 0;
    }

    /**
     * Device memory that a loaded module or library takes in each context that uses it.
     *
     * @return bytes; 0 where {@link #imageBytes} tells.
     */
    default long codeBytes(long module) {
        return 0;
    }

    /**
     * Device memory that a context takes for a limit (CUlimit) beyond what every context takes, when that has a value.
     * A kernel's local memory counts as a limit on the stack of so many bytes.
     *
     * @return bytes, 0 or more.
     */
    default long limitBytes(int device, int limit, long value) {
        return 0;
    }

    /**
     * Device memory that an allocation takes.
     *
     * @param bytes as asked for, over 0.
     * @return no less; a driver takes whole pages.
     */
    default long allocationBytes(long bytes) {
        return bytes;
    }

    /** Unloads a module or library; its functions are gone. */
    int unloadImage(long module);

    /** Finds a kernel. */
    int function(long module, String name, FunctionInfo out);

    /** Names of a module's kernels, or null when the backend cannot tell. */
    default List<String> functionNames(long module) {
        return null;
    }

    /** Finds a variable; {@code outPointerAndBytes} receives its address and size (two 64-bit numbers). */
    int global(long module, String name, MemorySegment outPointerAndBytes);

    /** Copies to the device in stream order; {@code source} stays valid until the copy is done. */
    int copyHtoD(long destination, MemorySegment source, long stream);

    /** Copies from the device in stream order; {@code destination} stays valid until the copy is done. */
    int copyDtoH(MemorySegment destination, long source, long stream);

    /** Whether {@link #copyBox} works; without it boxes are copied row by row. */
    default boolean canCopyBoxes() {
        return false;
    }

    /**
     * Copies rows of bytes between device memory and host memory that stays valid until the copy is done, or within
     * device memory, in stream order.
     *
     * @param cudaMemcpy3d the struct CUDA_MEMCPY3D with checked addresses; read before this returns.
     */
    default int copyBox(MemorySegment cudaMemcpy3d, long stream) {
        return CUresult.CUDA_ERROR_NOT_SUPPORTED;
    }

    /**
     * Makes the host memory known through which a guest and this process share bytes, so that {@link #copyHtoD} and
     * {@link #copyDtoH} reach it directly (an NVIDIA GPU wants it registered). At most once, before any copy with it;
     * it stays mapped as long as the backend is open. The guest can change it at any time.
     *
     * @param region the whole of it.
     * @return CUresult.
     */
    default int attachRegion(MemorySegment region) {
        return 0;
    }

    /**
     * Prepares a part of the attached region for many copies (an NVIDIA GPU reads only registered memory by itself; of
     * other memory the calling thread makes a copy first). It stays so as long as the
     * backend is open.
     *
     * @param part whole pages, of which no other part is prepared or mapped.
     * @return CUresult; copies work without this as well.
     */
    default int pinHost(MemorySegment part) {
        return 0;
    }

    /** Whether {@link #mapHost} works, and so kernels can use host memory of a region. */
    default boolean canMapHost() {
        return false;
    }

    /**
     * Lets kernels read and write a part of the attached region.
     *
     * @param part pieces of whole pages, not mapped yet.
     * @param out receives its device address (8 bytes).
     * @return CUresult.
     */
    default int mapHost(MemorySegment part, MemorySegment out) {
        return CUresult.CUDA_ERROR_NOT_SUPPORTED;
    }

    /** Takes back what {@link #mapHost} gave; no work uses it any more. */
    default int unmapHost(long deviceAddress) {
        return CUresult.CUDA_ERROR_NOT_SUPPORTED;
    }

    /** Addresses and memory apart; null when the backend has no such thing, and the device's attribute says so. */
    default VirtualMemory virtualMemory() {
        return null;
    }

    /** Memory of other processes; null when the backend's memory is its process's own. */
    default MemorySharing memorySharing() {
        return null;
    }

    /** CUDA arrays, textures and surfaces; null when the backend has none. */
    default ArrayBackend arrays() {
        return null;
    }

    /** Pools of a session's own; null when the backend has none. */
    default MemoryPools memoryPools() {
        return null;
    }

    /** Links device code; null when the backend cannot. */
    default DeviceLinker linker() {
        return null;
    }

    /**
     * How many clusters of a launch fit the device, and how large they may be.
     *
     * @param attributes array of CUlaunchAttribute.
     * @param out receives two ints: clusters and size, or the CUresult of each question, negated.
     */
    default int clusters(long function, int gridX, int gridY, int gridZ, int blockX, int blockY, int blockZ,
            int sharedBytes, MemorySegment attributes, MemorySegment out) {
        return CUresult.CUDA_ERROR_NOT_SUPPORTED;
    }

    /**
     * Waits for and writes values in stream order; the addresses have been checked.
     *
     * @param params {@code count} CUstreamBatchMemOpParams.
     */
    default int streamMemOps(long stream, int count, MemorySegment params) {
        return CUresult.CUDA_ERROR_NOT_SUPPORTED;
    }

    /**
     * Makes a tensor map.
     *
     * @param params HwsTensorMap; the address has been checked.
     * @param map receives a CUtensorMap; at a multiple of 64.
     */
    default int tensorMap(MemorySegment params, MemorySegment map) {
        return CUresult.CUDA_ERROR_NOT_SUPPORTED;
    }

    /** Memory for copies, pinned where the GPU wants it so. Any thread. */
    MemorySegment allocateStaging(long bytes);

    /** Frees what {@link #allocateStaging} gave. Any thread. */
    void freeStaging(MemorySegment staging);

    /** Where the device's printf text goes, from any thread, before the completion of the work that printed it. */
    void output(Consumer<byte[]> sink);

    /** Graphs; null where there are none. */
    default GraphBackend graphs() {
        return null;
    }

    /**
     * What two devices can do with each other.
     *
     * @param device the one that would access, from 0.
     * @param peer the one that has the memory.
     * @param attribute a CUdevice_P2PAttribute; 0 asks what cuDeviceCanAccessPeer answers.
     * @param value receives an int.
     * @return CUresult.
     */
    default int peerAttribute(int device, int peer, int attribute, MemorySegment value) {
        value.set(ValueLayout.JAVA_INT_UNALIGNED, 0, 0);
        return CUresult.CUDA_SUCCESS;
    }

    /** Whether a result means that the context is lost (CUDA_ERROR_ILLEGAL_ADDRESS and its like). */
    boolean isPoisoned(int cuResult);

    /** Loads what would be loaded from files later: the process opens none from now on. Once, before any session. */
    default void loadAhead() {
        // A backend that is all there has nothing to do.
    }

    /**
     * From now on the process opens no file but the GPU's own: what needs one is not offered any more
     * ({@link #deviceInfo}, {@link #memorySharing}). After {@link #loadAhead}, before any session.
     */
    default void confined() {
        // A backend that needs no files goes on as it is.
    }

    /** Frees everything, whatever still runs. */
    @Override
    void close();
}
