package io.hawser.gpu.nvidia;

import static io.hawser.cuda.generated.CUdevice_attribute.*;
import static io.hawser.cuda.generated.CUresult.*;

import io.hawser.cuda.backend.ArrayBackend;
import io.hawser.cuda.backend.DeviceLinker;
import io.hawser.cuda.backend.FunctionInfo;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.GraphBackend;
import io.hawser.cuda.backend.GreenContexts;
import io.hawser.cuda.backend.ManagedVariables;
import io.hawser.cuda.backend.MemoryPools;
import io.hawser.cuda.backend.MemorySharing;
import io.hawser.cuda.backend.Signals;
import io.hawser.cuda.backend.VariablePlaces;
import io.hawser.cuda.backend.VirtualMemory;
import io.hawser.cuda.generated.CudaDecompressNative;
import io.hawser.cuda.generated.CudaDriver;
import io.hawser.cuda.generated.CudaForeign;
import io.hawser.cuda.generated.CudaMemopsNative;
import io.hawser.cuda.generated.CudaNative;
import io.hawser.cuda.generated.HwsDeviceInfo;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.IntConsumer;
import java.util.function.LongToIntFunction;

/** NVIDIA GPUs as the worker's backend. */
final class NvidiaBackend implements GpuBackend {
    private static final int ATTRIBUTES = 160; // of HwsDeviceInfo
    private static final int REGISTER_FLAGS = 1 | 2; // CU_MEMHOSTREGISTER_PORTABLE, CU_MEMHOSTREGISTER_DEVICEMAP
    private static final int MAX_STREAMS_QUERIED = 4; // of a context; an event costs as much as some queries
    /** Longest time that a session thread polls for the end of work instead of sleeping. */
    private static final long PATIENCE_NS = patienceNs(Runtime.getRuntime().availableProcessors());

    private final int devices;
    private final NvidiaMemoryPools pools = new NvidiaMemoryPools();
    private final NvidiaDriver driver = new NvidiaDriver(this::functionHere, pools);
    private final NvidiaArrays arrays = new NvidiaArrays(driver);
    private final DeviceText text = new DeviceText();
    private final NvidiaGreenContexts greenContexts = new NvidiaGreenContexts(this::addGreen);
    private final Markers markers = new Markers(new DriverEvents(text, greenContexts::home));
    private final Watches watches = new Watches(new DriverStreams(text), markers);
    private final StagingSlabs slabs = new StagingSlabs();
    private final Images images = new Images();
    private final Libraries libraries = new Libraries();
    private final NvidiaManagedVariables managed = new NvidiaManagedVariables(images, this::moduleHere);
    private final Launches launches = new Launches();
    private final HostFunctions hostFunctions = new HostFunctions(markers);
    private final NvidiaVirtualMemory virtualMemory = new NvidiaVirtualMemory();
    private final NvidiaMemorySharing memorySharing = new NvidiaMemorySharing();
    private final NvidiaSignals signals = new NvidiaSignals(this, new CudaForeign());
    private long current;
    private final Graphs graphs = new Graphs(markers, () -> current, this::functionHere);
    private final NvidiaLinker linker = new NvidiaLinker();
    private final long[] primaries; // by device; 0 until created
    private final Map<Long, Belongings> belongings = new HashMap<>(); // of primary and green contexts
    /** The existing contexts. A call with a destroyed context would make the driver read freed memory. */
    private final Set<Long> contexts = ConcurrentHashMap.newKeySet();
    private final WaitStreams waitStreams = new WaitStreams();
    private long lastEndNs; // time of the last poll that found something, or of the last new wait; session thread

    /** CUDA itself polls without end while it waits; here only where enough processors are available. */
    private static long patienceNs(int processors) {
        return processors >= 8 ? 20_000_000 : processors > 2 ? 500_000 : 0;
    }

    private NvidiaBackend(int devices) {
        this.devices = devices;
        primaries = new long[devices];
    }

    /** Opens all GPUs that the process can use. */
    static NvidiaBackend open() {
        NvidiaBackend backend = new NvidiaBackend(DriverStart.devices());
        try (AddressRoom room = AddressRoom.take()) {
            inContext(backend.primary(0), () -> backend.images.anchor(DriverStart.architectures(backend.devices)));
        }
        Natives.check("cuMemHostAlloc", inContext(backend.primary(0), backend.slabs::open));
        return backend;
    }

    @Override
    public String name() {
        return "nvidia";
    }

    @Override
    public CudaDriver driver() {
        return driver;
    }

    @Override
    public int deviceCount() {
        return devices;
    }

    @Override
    public int deviceInfo(int ordinal, MemorySegment info) {
        int device = Natives.number(out -> CudaNative.cuDeviceGet(out, ordinal), -1);
        if (device < 0) {
            return CUDA_ERROR_INVALID_DEVICE;
        }
        info.asSlice(0, HwsDeviceInfo.BYTES).fill((byte) 0);
        CudaNative.cuDeviceGetName(info.asSlice(HwsDeviceInfo.NAME_OFFSET), HwsDeviceInfo.UUID_OFFSET, device);
        CudaNative.cuDeviceGetUuid_v2(info.asSlice(HwsDeviceInfo.UUID_OFFSET), device);
        int result = CudaNative.cuDeviceTotalMem_v2(info.asSlice(HwsDeviceInfo.TOTAL_BYTES_OFFSET), device);
        info.set(ValueLayout.JAVA_INT, HwsDeviceInfo.PCI_DOMAIN_OFFSET,
            attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, device));
        info.set(ValueLayout.JAVA_INT, HwsDeviceInfo.PCI_BUS_OFFSET,
            attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device));
        info.set(ValueLayout.JAVA_INT, HwsDeviceInfo.PCI_DEVICE_OFFSET,
            attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, device));
        info.set(ValueLayout.JAVA_INT, HwsDeviceInfo.ATTRIBUTE_COUNT_OFFSET, ATTRIBUTES);
        for (int i = 1; i < ATTRIBUTES; i++) {
            info.set(ValueLayout.JAVA_INT, HwsDeviceInfo.ATTRIBUTES_OFFSET + (long) i * Integer.BYTES,
                attribute(i, device));
        }
        return result;
    }

    /** A CUdevice_attribute; 0 if the driver does not know it. */
    static int attribute(int attribute, int device) {
        return Natives.number(out -> CudaNative.cuDeviceGetAttribute(out, attribute, device), 0);
    }

    private long primary(int device) {
        if (primaries[device] == 0) {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
                Natives.check("cuDevicePrimaryCtxRetain", CudaNative.cuDevicePrimaryCtxRetain(out, device));
                primaries[device] = out.get(ValueLayout.JAVA_LONG, 0);
            }
            belongings.put(primaries[device], driver.ofPrimary());
            contexts.add(primaries[device]);
        }
        return primaries[device];
    }

    @Override
    public int createContext(int device, int flags, boolean primary, MemorySegment out) {
        if (device < 0 || device >= devices) {
            return CUDA_ERROR_INVALID_DEVICE;
        }
        if (primary) {
            out.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, primary(device));
            return 0;
        }
        int result = CudaNative.cuCtxCreate_v2(out, flags, device);
        if (result == 0) {
            contexts.add(out.get(ValueLayout.JAVA_LONG_UNALIGNED, 0));
        }
        CudaNative.cuCtxSetCurrent(current); // cuCtxCreate makes the new context current
        return result;
    }

    @Override
    public int destroyContext(long context) {
        pools.forgetAll(); // the context's streams end with it
        if (current == context) {
            setCurrent(0);
        }
        if (greenContexts.has(context)) {
            contexts.remove(context);
            waitStreams.forget(context).forEach(driver::destroyStream);
            belongings.remove(context).endGreen(driver::cuStreamDestroy_v2);
            return greenContexts.destroy(context);
        }
        waitStreams.forget(context);
        Belongings own = belongings.get(context);
        if (own == null) {
            contexts.remove(context);
            libraries.forget(context);
            markers.forget(context);
            signals.forget(context);
            return CudaNative.cuCtxDestroy_v2(context);
        }
        return inContext(context, () -> {
            own.free(driver, images);
            return 0;
        });
    }

    @Override
    public int setCurrent(long context) {
        watches.seal(); // watches query streams of the current context
        int result = CudaNative.cuCtxSetCurrent(context);
        if (result == 0) {
            current = context;
            driver.setBelongings(belongings.get(context));
        }
        return result;
    }

    /** A step that returns a CUresult. */
    private interface Step {
        int run();
    }

    /** Runs a step with a context current, then restores the previous one. Any thread. */
    private static int inContext(long context, Step step) {
        int result = CudaNative.cuCtxPushCurrent_v2(context);
        if (result != 0) {
            return result;
        }
        try (Arena arena = Arena.ofConfined()) {
            int answer = step.run();
            CudaNative.cuCtxPopCurrent_v2(arena.allocate(ValueLayout.JAVA_LONG));
            return answer;
        }
    }

    private int inOrAsCurrent(long context, Step step) {
        return context == current ? step.run() : inContext(context, step);
    }

    /** Records a marker event with {@code recorder}, and watches it. */
    private int mark(long context, long stream, LongToIntFunction recorder, IntConsumer action) {
        if (!contexts.contains(context)) {
            return CUDA_ERROR_INVALID_CONTEXT;
        }
        return inOrAsCurrent(context, () -> {
            long event = event(context);
            if (event < 0) {
                return (int) -event; // the error of a context that has failed
            }
            int result = recorder.applyAsInt(event);
            if (result == 0) {
                markers.add(context, stream, event, action);
            } else {
                markers.give(context, event);
            }
            return result;
        });
    }

    /** An event that outlives a green context; a negated CUresult on failure. The context is current. */
    private long event(long context) {
        long home = greenContexts.home(context);
        if (home == context) {
            return markers.event(context);
        }
        long[] event = new long[1];
        int result = inContext(home, () -> {
            event[0] = markers.event(home);
            return 0;
        });
        return result != 0 ? -result : event[0];
    }

    @Override
    public int whenStreamReached(long context, long stream, IntConsumer action) {
        LongToIntFunction recorder = event -> CudaNative.cuEventRecord(event, stream);
        if (context != current || !contexts.contains(context)) {
            return mark(context, stream, recorder, action);
        }
        lastEndNs = System.nanoTime();
        watches.add(new long[] {stream}, action, () -> mark(context, stream, recorder, action));
        return 0;
    }

    @Override
    public int whenContextReached(long context, IntConsumer action) {
        LongToIntFunction recorder = event -> CudaNative.cuCtxRecordEvent(context, event);
        Belongings own = belongings.get(context);
        long[] streams = own == null || context != current ? null : own.streams(MAX_STREAMS_QUERIED);
        if (streams == null) {
            int late = own == null ? 0 : own.lateStreams();
            return mark(context, -1, recorder, own == null ? action : status -> {
                own.markLateStreamsReached(late);
                action.accept(status);
            });
        }
        lastEndNs = System.nanoTime();
        watches.add(streams, action, () -> mark(context, -1, recorder, action));
        return 0;
    }

    @Override
    public boolean poll() {
        boolean any = watches.poll() | markers.poll();
        lastEndNs = any ? System.nanoTime() : lastEndNs;
        return any;
    }

    @Override
    public void pass() {
        markers.pass(); // which the watches have been behind since the request began: seal()
    }

    @Override
    public void setPolled(boolean polled) {
        markers.setPolled(polled);
    }

    @Override
    public void seal() {
        watches.seal();
    }

    @Override
    public boolean isWorthPolling() {
        return (!watches.isEmpty() || markers.isWatching()) && System.nanoTime() - lastEndNs < PATIENCE_NS;
    }

    @Override
    public int whenEventReached(long event, IntConsumer action) {
        // The guest may record the event again before it is reached. A stream that waits for it now keeps waiting for
        // this recording.
        long context = current;
        long stream = waitStreams.take(context);
        if (stream < 0) {
            return (int) -stream;
        }
        int result = CudaNative.cuStreamWaitEvent(stream, event, 0);
        return result != 0 ? result : mark(context, stream, own -> CudaNative.cuEventRecord(own, stream), status -> {
            action.accept(status);
            waitStreams.give(context, stream);
        });
    }

    @Override
    public int hostFunction(long stream, Runnable function) {
        watches.seal();
        return hostFunctions.issue(stream, function);
    }

    /** The current context, for a green context its primary context: all objects but streams belong to it. */
    long home() {
        return greenContexts.home(current);
    }

    private void addGreen(long context, long primary) {
        contexts.add(context);
        belongings.put(context, new Belongings(belongings.get(primary)));
    }

    @Override
    public GreenContexts greenContexts() {
        return greenContexts;
    }

    @Override
    public GraphBackend graphs() {
        return graphs;
    }

    @Override
    public int launch(long function, int gridX, int gridY, int gridZ, int blockX, int blockY, int blockZ,
        int sharedBytes, long stream, int flags, MemorySegment packedParams, MemorySegment attributes) {
        watches.seal();
        return launches.launch(libraries.here(function, home()), gridX, gridY, gridZ, blockX, blockY, blockZ,
            sharedBytes, stream, flags, packedParams, attributes);
    }

    @Override
    public int loadImage(MemorySegment image, MemorySegment out, StringBuilder log) {
        return images.load(image, out, log, driver.belongings().modules::add);
    }

    @Override
    public int loadLibrary(MemorySegment image, MemorySegment out, StringBuilder log) {
        return images.loadLibrary(image, out, log, library -> libraries.add(library, images.places()));
    }

    @Override
    public long imageBytes(MemorySegment image) {
        return MemoryCosts.ofCode(images.bytes(image));
    }

    @Override
    public long limitBytes(int device, int limit, long value) {
        return MemoryCosts.ofLimit(device, limit, value);
    }

    @Override
    public long allocationBytes(long bytes) {
        return MemoryCosts.ofAllocation(bytes);
    }

    @Override
    public int unloadImage(long module) {
        images.forget(module);
        if (libraries.has(module)) {
            return libraries.unload(module);
        }
        driver.belongings().modules.remove(module);
        return images.unload(module);
    }

    @Override
    public int function(long module, String name, FunctionInfo out) {
        long here = moduleHere(module);
        if (here < 0) {
            return (int) -here;
        }
        if (images.mayPrint(module)) {
            text.enable(); // enabled here, because a kernel can be launched in several ways
        }
        int result = Images.function(here, name, out);
        if (result == 0) {
            libraries.record(module, name, home(), out.handle());
        }
        return result;
    }

    private long moduleHere(long module) {
        return libraries.module(module, home());
    }

    /** The handle of a kernel in the current context: a library's kernel has another handle in each. */
    long functionHere(long function) {
        return libraries.here(function, home());
    }

    @Override
    public List<String> functionNames(long module) {
        long here = moduleHere(module);
        return here < 0 ? null : Images.functionNames(here);
    }

    @Override
    public int global(long module, String name, MemorySegment outPointerAndBytes) {
        long here = moduleHere(module);
        return here < 0 ? (int) -here : Images.global(here, name, outPointerAndBytes);
    }

    @Override
    public ManagedVariables managedVariables() {
        return managed;
    }

    @Override
    public List<ManagedVariables.Variable> variables(long module) {
        return managed.others(module);
    }

    @Override
    public VariablePlaces variablePlaces() {
        return images.places();
    }

    @Override
    public long kernelHeapBytes() {
        return images.mayAllocate() ? -1 : 0;
    }

    @Override
    public int copyHtoD(long destination, MemorySegment source, long stream) {
        watches.seal();
        return CudaNative.cuMemcpyHtoDAsync_v2(destination, source, source.byteSize(), stream);
    }

    @Override
    public int copyDtoH(MemorySegment destination, long source, long stream) {
        watches.seal();
        return CudaNative.cuMemcpyDtoHAsync_v2(destination, source, destination.byteSize(), stream);
    }

    @Override
    public boolean canCopyBoxes() {
        return true;
    }

    @Override
    public int copyBox(MemorySegment cudaMemcpy3d, long stream) {
        watches.seal();
        return CudaNative.cuMemcpy3DAsync_v2(cudaMemcpy3d, stream);
    }

    @Override
    public int pinHost(MemorySegment part) {
        return inContext(primaries[0], () -> CudaNative.cuMemHostRegister_v2(part, part.byteSize(), REGISTER_FLAGS));
    }

    @Override
    public boolean canMapHost() {
        return true;
    }

    @Override
    public int mapHost(MemorySegment part, MemorySegment out) {
        return inContext(primaries[0], () -> {
            int result = CudaNative.cuMemHostRegister_v2(part, part.byteSize(), REGISTER_FLAGS);
            return result != 0 ? result : CudaNative.cuMemHostGetDevicePointer_v2(out, part, 0);
        });
    }

    @Override
    public int unmapHost(long deviceAddress) {
        // With unified addressing, the device address of registered memory equals its host address in this process.
        return inContext(primaries[0], () -> CudaNative.cuMemHostUnregister(MemorySegment.ofAddress(deviceAddress)));
    }

    @Override
    public MemoryPools memoryPools() {
        return pools;
    }

    @Override
    public DeviceLinker linker() {
        return linker;
    }

    @Override
    public int clusters(long function, int gridX, int gridY, int gridZ, int blockX, int blockY, int blockZ,
        int sharedBytes, MemorySegment attributes, MemorySegment out) {
        return launches.clusters(function, gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes, attributes, out);
    }

    @Override
    public int decompress(long stream, int count, MemorySegment params) {
        return CudaDecompressNative.cuMemBatchDecompressAsync(params, count, 0, MemorySegment.NULL, stream);
    }

    @Override
    public int streamMemOps(long stream, int count, MemorySegment params) {
        return CudaMemopsNative.cuStreamBatchMemOp_v2(stream, count, params, 0);
    }

    @Override
    public int tensorMap(MemorySegment params, MemorySegment map) {
        return TensorMaps.encode(params, map);
    }

    @Override
    public VirtualMemory virtualMemory() {
        return virtualMemory;
    }

    @Override
    public Signals signals() {
        return signals;
    }

    @Override
    public MemorySharing memorySharing() {
        return memorySharing;
    }

    @Override
    public ArrayBackend arrays() {
        return arrays;
    }

    @Override
    public MemorySegment allocateStaging(long bytes) {
        MemorySegment[] taken = new MemorySegment[1];
        int result = inContext(primaries[0], () -> {
            taken[0] = slabs.take(bytes);
            return taken[0] == null ? CUDA_ERROR_INVALID_VALUE : 0;
        });
        return result == 0 ? taken[0] : null;
    }

    @Override
    public void freeStaging(MemorySegment staging) {
        slabs.give(staging);
    }

    @Override
    public int peerAttribute(int device, int peer, int attribute, MemorySegment value) {
        return attribute == 0 ? CudaNative.cuDeviceCanAccessPeer(value, device, peer)
            : CudaNative.cuDeviceGetP2PAttribute(value, attribute, device, peer);
    }

    @Override
    public void output(Consumer<byte[]> sink) {
        text.sink(sink);
    }

    @Override
    public boolean isPoisoned(int cuResult) {
        return Natives.isPoisoned(cuResult);
    }

    @Override
    public void loadAhead() {
        JitCompiler.load();
    }

    @Override
    public void close() {
        markers.close();
    }
}
