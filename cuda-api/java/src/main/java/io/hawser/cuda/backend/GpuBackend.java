package io.hawser.cuda.backend;

import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.CudaDriver;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.IntConsumer;
import java.util.function.Supplier;

/**
 * A GPU for one worker. Methods that return {@code int} return a CUresult and never throw for any input of a guest. The
 * decoder's thread calls them in the guest's order, except where a method states otherwise; none blocks. Handles are
 * the backend's own, never a guest's ids. Streams: 0 is the legacy default stream of the current context.
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

    /** Creates a context; {@code out} receives its native handle (8 bytes). Each device has one primary context. */
    int createContext(int device, int flags, boolean primary, MemorySegment out);

    /** Destroys a context and all of its objects. */
    int destroyContext(long nativeContext);

    /** Makes a context current for the following calls; 0 for none. */
    int setCurrent(long nativeContext);

    /**
     * Runs an action when all work issued so far to a stream is done or has failed. The action gets the CUresult, on
     * any thread, and must not block. Other work may follow the same work, in any stream that waits for it. The action
     * returns before this or the next two methods report such other work.
     *
     * @param context the stream's context, which determines stream 0.
     */
    int whenStreamReached(long context, long stream, IntConsumer action);

    /** As {@link #whenStreamReached} for all streams of a context. */
    int whenContextReached(long context, IntConsumer action);

    /** As {@link #whenStreamReached} for the work that an event has recorded; at once if it has recorded none. */
    int whenEventReached(long event, IntConsumer action);

    /**
     * Checks for completed work, in a backend that must ask its driver, and runs the due actions. Session thread; waits
     * for nothing.
     *
     * @return whether an action ran.
     */
    default boolean poll() {
        return false;
    }

    /**
     * Runs the due actions of all work that the driver reports as done. Session thread; waits for nothing. The default
     * does nothing: it is for a backend that runs them before its driver reports the work.
     */
    default void pass() {
    }

    /**
     * Sets whether the session thread calls {@link #poll} often, until the next call of this. While it does not, as
     * before the first call, the backend checks for completed work itself.
     */
    default void setPolled(boolean polled) {
    }

    /** Whether an idle session thread should continue to poll instead of sleeping. */
    default boolean isWorthPolling() {
        return false;
    }

    /**
     * Separates work: the earlier calls of {@link #whenStreamReached} and its relatives do not cover work that is
     * issued after this. Session thread, before each request.
     */
    default void seal() {
    }

    /**
     * Runs a function in stream order. The function may block; the stream continues when it returns. In a stream of the
     * software GPU that captures ({@link GraphBackend#beginCapture}), the function becomes a node, and runs at each
     * execution of the graph. Libraries of the software GPU issue all their work by it.
     */
    int hostFunction(long stream, Runnable function);

    /**
     * As {@link #hostFunction}, for a library of the software GPU that keeps the order of the guest's calls: the
     * function is made when the work is issued, by the thread that issues it. For a node, that is each launch of the
     * graph.
     */
    default int hostFunctionOfEachIssue(long stream, Supplier<Runnable> functions) {
        throw new UnsupportedOperationException("only the software GPU has such functions");
    }

    /**
     * Launches a kernel.
     *
     * @param flags bit 0: cooperative.
     * @param packedParams parameters at the offsets from {@link #function}; read before this returns.
     * @param attributes array of CUlaunchAttribute, may be empty; read before this returns.
     */
    int launch(long function, int gridX, int gridY, int gridZ, int blockX, int blockY, int blockZ, int sharedBytes,
        long stream, int flags, MemorySegment packedParams, MemorySegment attributes);

    /**
     * Loads device code.
     *
     * @param image complete cubin, PTX text or fat binary.
     * @param out receives the native module (8 bytes).
     * @param log receives the compiler's messages.
     */
    int loadImage(MemorySegment image, MemorySegment out, StringBuilder log);

    /**
     * Loads device code that belongs to no context: its functions can be launched in each context, and each context has
     * its own variables. The handle is accepted in place of a module's; {@link #global} then uses the current context.
     *
     * @param image as for {@link #loadImage}.
     * @param out receives the native handle (8 bytes).
     * @param log as for {@link #loadImage}.
     */
    default int loadLibrary(MemorySegment image, MemorySegment out, StringBuilder log) {
        return loadImage(image, out, log);
    }

    /**
     * Device memory that code needs in each context that uses it, mainly for its variables.
     *
     * @param image as for {@link #loadImage}, of any content.
     * @return bytes, 0 or more; 0 where {@link #codeBytes} gives them.
     */
    default long imageBytes(MemorySegment image) {
        return 0;
    }

    /**
     * Device memory that a loaded module or library needs in each context that uses it.
     *
     * @return bytes; 0 where {@link #imageBytes} gives them.
     */
    default long codeBytes(long module) {
        return 0;
    }

    /**
     * Device memory that a context needs for a value of a limit (CUlimit), beyond the memory that every context needs.
     * A kernel's local memory counts like a stack limit of the same size.
     *
     * @return bytes, 0 or more.
     */
    default long limitBytes(int device, int limit, long value) {
        return 0;
    }

    /**
     * Device memory that an allocation takes.
     *
     * @param bytes the requested size, over 0.
     * @return the requested size or more; a driver allocates whole pages.
     */
    default long allocationBytes(long bytes) {
        return bytes;
    }

    /** Unloads a module or library with its functions. */
    int unloadImage(long module);

    /** Finds a kernel. */
    int function(long module, String name, FunctionInfo out);

    /** Names of a module's kernels, or null when the backend does not know them. */
    default List<String> functionNames(long module) {
        return null;
    }

    /** Finds a variable; {@code outPointerAndBytes} receives its address and size (two 64-bit numbers). */
    int global(long module, String name, MemorySegment outPointerAndBytes);

    /**
     * All variables of a module or library in the current context, managed ones excepted.
     *
     * @param module a live one.
     * @return always in the same order; null where the backend does not know them.
     */
    default List<ManagedVariables.Variable> variables(long module) {
        return null;
    }

    /** Chooses addresses of variables. */
    default VariablePlaces variablePlaces() {
        return VariablePlaces.NONE;
    }

    /** Device memory that kernels have allocated by malloc() and not freed, in bytes; -1 where nobody knows it. */
    default long kernelHeapBytes() {
        return -1;
    }

    /** The managed variables of modules. */
    default ManagedVariables managedVariables() {
        return module -> List.of();
    }

    /** Copies to the device in stream order; {@code source} stays valid until the copy is done. */
    int copyHtoD(long destination, MemorySegment source, long stream);

    /** Copies from the device in stream order; {@code destination} stays valid until the copy is done. */
    int copyDtoH(MemorySegment destination, long source, long stream);

    /** Whether {@link #copyBox} works; otherwise boxes are copied row by row. */
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
     * Attaches the host memory that a guest and this process share, so that {@link #copyHtoD} and {@link #copyDtoH} can
     * access it directly (an NVIDIA GPU needs it registered). Call at most once, before any copy with it. The memory
     * stays mapped while the backend is open. The guest can change it at any time.
     *
     * @param region the whole region.
     * @return CUresult.
     */
    default int attachRegion(MemorySegment region) {
        return 0;
    }

    /**
     * Prepares host memory for many copies: a part of the attached region, or memory of this process. An NVIDIA GPU
     * directly reads only registered memory; for other memory the calling thread first makes a copy. The part stays
     * prepared while the backend is open. Any thread.
     *
     * @param part whole pages that do not overlap a prepared or mapped part.
     * @return CUresult; copies also work without this call.
     */
    default int pinHost(MemorySegment part) {
        return 0;
    }

    /** Whether {@link #mapHost} works, so that kernels can access host memory of a region. */
    default boolean canMapHost() {
        return false;
    }

    /**
     * Gives kernels access to a part of the attached region.
     *
     * @param part whole pages that are not mapped.
     * @param out receives its device address (8 bytes).
     * @return CUresult.
     */
    default int mapHost(MemorySegment part, MemorySegment out) {
        return CUresult.CUDA_ERROR_NOT_SUPPORTED;
    }

    /** Ends the access that {@link #mapHost} gave; no work uses the memory any more. */
    default int unmapHost(long deviceAddress) {
        return CUresult.CUDA_ERROR_NOT_SUPPORTED;
    }

    /** Virtual memory management; null when the backend has none, as the device's attribute then states. */
    default VirtualMemory virtualMemory() {
        return null;
    }

    /** Access to other processes' memory; null when the backend has none. */
    default MemorySharing memorySharing() {
        return null;
    }

    /** CUDA arrays, textures and surfaces; null when the backend has none. */
    default ArrayBackend arrays() {
        return null;
    }

    /** Pools that a session creates; null when the backend has none. */
    default MemoryPools memoryPools() {
        return null;
    }

    /** Green contexts; null when the backend has none. */
    default GreenContexts greenContexts() {
        return null;
    }

    /** Links device code; null when the backend cannot link. */
    default DeviceLinker linker() {
        return null;
    }

    /**
     * Computes how many clusters of a launch fit the device, and the maximum size of a cluster.
     *
     * @param attributes array of CUlaunchAttribute.
     * @param out receives two ints: clusters and size; each is the negated CUresult if its query fails.
     */
    default int clusters(long function, int gridX, int gridY, int gridZ, int blockX, int blockY, int blockZ,
        int sharedBytes, MemorySegment attributes, MemorySegment out) {
        return CUresult.CUDA_ERROR_NOT_SUPPORTED;
    }

    /**
     * Decompresses in stream order; the addresses have been checked.
     *
     * @param params {@code count} CUmemDecompressParams.
     */
    default int decompress(long stream, int count, MemorySegment params) {
        return CUresult.CUDA_ERROR_NOT_SUPPORTED;
    }

    /** Words that streams of several processes write and wait for; null when this GPU has none. */
    default Signals signals() {
        return null;
    }

    /**
     * Waits for values and writes values in stream order; the addresses have been checked.
     *
     * @param params {@code count} CUstreamBatchMemOpParams.
     */
    default int streamMemOps(long stream, int count, MemorySegment params) {
        return CUresult.CUDA_ERROR_NOT_SUPPORTED;
    }

    /**
     * Creates a tensor map.
     *
     * @param params HwsTensorMap; the address has been checked.
     * @param map receives a CUtensorMap; at a multiple of 64.
     */
    default int tensorMap(MemorySegment params, MemorySegment map) {
        return CUresult.CUDA_ERROR_NOT_SUPPORTED;
    }

    /** Allocates memory for copies, pinned where the GPU needs it. Any thread. */
    MemorySegment allocateStaging(long bytes);

    /** Frees memory from {@link #allocateStaging}. Any thread. */
    void freeStaging(MemorySegment staging);

    /**
     * Sets the receiver of printf text of kernels: called by any thread, before the completion of the work that printed
     * it.
     */
    void output(Consumer<byte[]> sink);

    /** Graphs; null when the backend has none. */
    default GraphBackend graphs() {
        return null;
    }

    /**
     * Access of one device to another's memory.
     *
     * @param device the accessing device, from 0.
     * @param peer the device with the memory.
     * @param attribute a CUdevice_P2PAttribute, or 0 for cuDeviceCanAccessPeer.
     * @param value receives an int.
     * @return CUresult.
     */
    default int peerAttribute(int device, int peer, int attribute, MemorySegment value) {
        value.set(ValueLayout.JAVA_INT_UNALIGNED, 0, 0);
        return CUresult.CUDA_SUCCESS;
    }

    /** Whether a result means that the context has failed for good, for example CUDA_ERROR_ILLEGAL_ADDRESS. */
    boolean isPoisoned(int cuResult);

    /**
     * Loads everything that would otherwise be loaded from files later, because the jailed process opens none. Call
     * once, before any session.
     */
    default void loadAhead() {
        // A backend without such files has nothing to load.
    }

    /** Frees everything, including running work. */
    @Override
    void close();
}
