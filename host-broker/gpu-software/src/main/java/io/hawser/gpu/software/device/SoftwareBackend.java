package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;

import io.hawser.cuda.backend.ArrayBackend;
import io.hawser.cuda.backend.DeviceLinker;
import io.hawser.cuda.backend.FunctionInfo;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.GraphBackend;
import io.hawser.cuda.backend.GreenContexts;
import io.hawser.cuda.backend.ManagedVariables;
import io.hawser.cuda.backend.MemoryPools;
import io.hawser.cuda.backend.Signals;
import io.hawser.cuda.backend.VirtualMemory;
import io.hawser.cuda.generated.CUdevice_P2PAttribute;
import io.hawser.cuda.generated.CUfunction_attribute;
import io.hawser.cuda.generated.CudaDriver;
import io.hawser.gpu.software.compile.PtxKernel;
import io.hawser.gpu.software.compile.PtxVariable;
import io.hawser.gpu.software.exec.DeviceFault;
import io.hawser.gpu.software.image.ImageException;
import io.hawser.gpu.software.ptx.PtxException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.IntConsumer;
import java.util.function.Supplier;

/** The software GPU behind the worker's interface: one device, or several identical ones. */
public final class SoftwareBackend implements GpuBackend {
    private static final System.Logger LOG = System.getLogger(SoftwareBackend.class.getName());
    /** Copies up to this size run on the issuing thread when they have no predecessors: a hand-over would cost more. */
    private static final long INLINE_COPY_BYTES = 64 << 10;

    private final int[] numbers; // numbers of the devices on this machine, by ordinal
    private final Device device;
    private final SoftwareSignals signals;
    private final SoftwareArrays arrays;
    private final SoftwareDriver driver;
    private final Launcher launcher;
    private final SoftwareVirtualMemory virtualMemory;
    private final Graphs graphs;
    private final SoftwarePools pools;
    private final SoftwareGreenContexts greenContexts;
    private final SoftwareLinker linker = new SoftwareLinker();
    private final ManagedVariables managedVariables = new ManagedVariables() {
        @Override
        public List<Variable> of(long module) {
            return managedVariables(module);
        }

        @Override
        public void move(int times) {
            device.managed.move(times);
        }
    };
    private final Map<Long, Arena> staging = new ConcurrentHashMap<>();

    /**
     * @param memoryBytes memory of the device.
     * @param processors processors of the machine that kernels may use; at least 1.
     */
    public SoftwareBackend(long memoryBytes, int processors) {
        this(memoryBytes, processors, 0);
    }

    /**
     * @param memoryBytes memory of all devices together; each device has an equal part.
     * @param processors processors of the machine that kernels of all devices may use; at least 1.
     * @param numbers numbers of the devices on this machine; machine and number determine a device's UUID.
     */
    public SoftwareBackend(long memoryBytes, int processors, int... numbers) {
        this.numbers = numbers.clone();
        device = new Device(memoryBytes, processors, numbers.length);
        signals = new SoftwareSignals(device);
        arrays = new SoftwareArrays(device);
        driver = new SoftwareDriver(device, arrays);
        launcher = new Launcher(device);
        virtualMemory = SoftwareVirtualMemory.of(device.memory);
        graphs = new Graphs(device, launcher);
        pools = new SoftwarePools(device);
        greenContexts = new SoftwareGreenContexts(device);
    }

    @Override
    public String name() {
        return "software";
    }

    @Override
    public CudaDriver driver() {
        return driver;
    }

    @Override
    public int deviceCount() {
        return numbers.length;
    }

    /** The UUID of a device of this machine by its number, as 8-4-4-4-12 digits. */
    public static String uuid(int number) {
        return Properties.uuid(number).toString();
    }

    @Override
    public int deviceInfo(int ordinal, MemorySegment info) {
        if (ordinal < 0 || ordinal >= numbers.length) {
            return CUDA_ERROR_INVALID_DEVICE;
        }
        Properties.describe(info, numbers[ordinal], device.memoryOfEach(), device.scheduler.processors(),
            device.host.isAttached(), virtualMemory != null);
        return CUDA_SUCCESS;
    }

    @Override
    public int createContext(int ordinal, int flags, boolean primary, MemorySegment out) {
        if (ordinal < 0 || ordinal >= numbers.length) {
            return CUDA_ERROR_INVALID_DEVICE;
        }
        Context context = primary ? device.primary(ordinal) : null;
        if (context == null) {
            context = new Context(device.handles.peek(), ordinal, flags, primary, device.scheduler);
            device.handles.add(context);
            if (primary) {
                device.setPrimary(ordinal, context);
            }
        }
        out.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, context.id);
        return CUDA_SUCCESS;
    }

    @Override
    public int destroyContext(long nativeContext) {
        Context context = device.handles.get(nativeContext, Context.class);
        if (context == null) {
            return CUDA_ERROR_INVALID_CONTEXT;
        }
        if (context.isGreen()) {
            context.owner.greens().remove(context);
        } else {
            device.release(context);
        }
        for (Stream stream : new ArrayList<>(context.streams())) {
            device.handles.remove(stream.id);
        }
        device.handles.remove(nativeContext);
        if (device.primary(context.ordinal) == context) {
            device.setPrimary(context.ordinal, null);
        }
        if (device.current() == context) {
            device.setCurrent(null);
        }
        return CUDA_SUCCESS;
    }

    @Override
    public int setCurrent(long nativeContext) {
        Context context = nativeContext == 0 ? null : device.handles.get(nativeContext, Context.class);
        if (context == null && nativeContext != 0) {
            return CUDA_ERROR_INVALID_CONTEXT;
        }
        device.setCurrent(context);
        return CUDA_SUCCESS;
    }

    @Override
    public int whenStreamReached(long nativeContext, long handle, IntConsumer action) {
        Context context = device.handles.get(nativeContext, Context.class);
        if (context == null) {
            return CUDA_ERROR_INVALID_CONTEXT;
        }
        Stream stream = handle == 0 || handle == 1 ? context.legacy : device.handles.get(handle, Stream.class);
        if (stream == null) {
            return CUDA_ERROR_INVALID_HANDLE;
        }
        stream.context.afterStream(stream, () -> action.accept(stream.context.error()));
        return CUDA_SUCCESS;
    }

    @Override
    public int whenContextReached(long nativeContext, IntConsumer action) {
        Context context = device.handles.get(nativeContext, Context.class);
        if (context == null) {
            return CUDA_ERROR_INVALID_CONTEXT;
        }
        context.issueAfterAll(() -> action.accept(context.error()));
        return CUDA_SUCCESS;
    }

    @Override
    public int whenEventReached(long handle, IntConsumer action) {
        Event event = device.handles.get(handle, Event.class);
        if (event == null) {
            return CUDA_ERROR_INVALID_HANDLE;
        }
        Context context = event.context();
        Work work = Work.report(device.scheduler,
            () -> action.accept(context == null ? CUDA_SUCCESS : context.error()));
        work.follow(event.recorded());
        work.issueInline();
        return CUDA_SUCCESS;
    }

    @Override
    public int hostFunction(long handle, Runnable function) {
        return hostFunctionOfEachIssue(handle, () -> function);
    }

    @Override
    public int hostFunctionOfEachIssue(long handle, Supplier<Runnable> functions) {
        Stream stream = device.stream(handle);
        if (stream != null && stream.capture() != null) {
            return graphs.capture(stream, functions);
        }
        int check = device.check(stream);
        if (check != CUDA_SUCCESS) {
            return check;
        }
        stream.context.issue(stream, GraphBodies.routine(functions.get(), stream.context), false);
        return CUDA_SUCCESS;
    }

    @Override
    public int launch(long handle, int gridX, int gridY, int gridZ, int blockX, int blockY, int blockZ,
        int sharedBytes, long streamHandle, int flags, MemorySegment packedParams,
        MemorySegment attributes) {
        Stream stream = device.stream(streamHandle);
        int check = device.check(stream);
        if (check != CUDA_SUCCESS) {
            return check;
        }
        KernelFunction function = device.function(handle);
        if (function == null) {
            return CUDA_ERROR_INVALID_HANDLE;
        }
        return launcher.launch(new Launcher.Request(function, new int[] {gridX, gridY, gridZ},
            new int[] {blockX, blockY, blockZ}, sharedBytes, flags, packedParams, attributes), stream);
    }

    @Override
    public int loadImage(MemorySegment image, MemorySegment out, StringBuilder log) {
        int check = device.check();
        return check != CUDA_SUCCESS ? check : load(log, () -> {
            long handle = device.handles.add(device.load(image, null));
            device.ownModule(handle);
            out.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, handle);
            return CUDA_SUCCESS;
        });
    }

    @Override
    public int loadLibrary(MemorySegment image, MemorySegment out, StringBuilder log) {
        int check = device.check();
        return check != CUDA_SUCCESS ? check : load(log, () -> {
            Library library = new Library(image.toArray(ValueLayout.JAVA_BYTE));
            long handle = device.addLibrary(library);
            try {
                device.module(handle);
                out.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, handle);
                return CUDA_SUCCESS;
            } finally {
                if (library.instances.isEmpty()) {
                    device.unloadLibrary(handle, library);
                }
            }
        });
    }

    /** Loads code that may be refused; returns a CUresult. */
    private interface Loading {
        int run() throws ImageException, PtxException, LoadedModule.NoMemoryException;
    }

    private static int load(StringBuilder log, Loading loading) {
        try {
            return loading.run();
        } catch (ImageException e) {
            log.append(e.getMessage()).append('\n');
            return e.cuResult();
        } catch (PtxException e) {
            return refused(e, log);
        } catch (LoadedModule.NoMemoryException e) {
            log.append(e.getMessage()).append('\n');
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }

    private static int refused(PtxException e, StringBuilder log) {
        log.append("ptx: ").append(e.getMessage()).append('\n');
        // The operator must see the missing instruction, whether or not the program requested the log.
        LOG.log(System.Logger.Level.WARNING, "device code refused: " + e.getMessage());
        return e.cuResult();
    }

    @Override
    public long codeBytes(long handle) {
        Library library = device.handles.get(handle, Library.class);
        LoadedModule module = library == null ? device.handles.get(handle, LoadedModule.class)
            : library.instances.values().stream().findFirst()
                .map(instance -> device.handles.get(instance, LoadedModule.class)).orElse(null);
        return module == null ? 0 : module.bytes();
    }

    @Override
    public int unloadImage(long handle) {
        Library library = device.handles.get(handle, Library.class);
        if (library != null) {
            device.unloadLibrary(handle, library);
            return CUDA_SUCCESS;
        }
        if (device.handles.get(handle, LoadedModule.class) == null) {
            return CUDA_ERROR_INVALID_HANDLE;
        }
        device.disownModule(handle);
        device.unload(handle, device.current());
        return CUDA_SUCCESS;
    }

    @Override
    public int function(long handle, String name, FunctionInfo out) {
        return load(new StringBuilder(), () -> {
            LoadedModule module = device.module(handle);
            if (module == null) {
                return CUDA_ERROR_INVALID_HANDLE;
            }
            long kernel = device.kernel(module, name);
            if (kernel == 0) {
                return CUDA_ERROR_NOT_FOUND;
            }
            describe(kernel, device.handles.get(kernel, KernelFunction.class), out);
            return CUDA_SUCCESS;
        });
    }

    private static void describe(long handle, KernelFunction function, FunctionInfo out) {
        PtxKernel kernel = function.kernel;
        List<PtxKernel.Param> params = kernel.params();
        if (kernel.refusal() != null) {
            out.refusal(kernel.refusal().getMessage());
        }
        out.set(handle, params.stream().mapToInt(PtxKernel.Param::offset).toArray(),
            params.stream().mapToInt(PtxKernel.Param::bytes).toArray());
        out.attribute(CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel.maxThreadsPerBlock());
        out.attribute(CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel.staticSharedBytes());
        out.attribute(CUfunction_attribute.CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, kernel.constBytes());
        out.attribute(CUfunction_attribute.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel.localBytesPerThread());
        out.attribute(CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, kernel.registers());
        out.attribute(CUfunction_attribute.CU_FUNC_ATTRIBUTE_PTX_VERSION, kernel.targetSm());
        out.attribute(CUfunction_attribute.CU_FUNC_ATTRIBUTE_BINARY_VERSION, Properties.COMPUTE_CAPABILITY);
        out.attribute(CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            function.maxDynamicSharedBytes);
        out.attribute(CUfunction_attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1);
    }

    @Override
    public List<String> functionNames(long handle) {
        List<String> names = new ArrayList<>();
        int result = load(new StringBuilder(), () -> {
            LoadedModule module = device.module(handle);
            if (module == null) {
                return CUDA_ERROR_INVALID_HANDLE;
            }
            names.addAll(module.image.kernels().keySet());
            return CUDA_SUCCESS;
        });
        names.sort(null); // a guest that reads the list in several pieces gets each name once
        return result == CUDA_SUCCESS ? names : null;
    }

    @Override
    public int global(long handle, String name, MemorySegment outPointerAndBytes) {
        return load(new StringBuilder(), () -> {
            LoadedModule module = device.module(handle);
            if (module == null) {
                return CUDA_ERROR_INVALID_HANDLE;
            }
            PtxVariable variable = module.variable(name);
            if (variable == null) {
                return CUDA_ERROR_NOT_FOUND;
            }
            outPointerAndBytes.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, module.address(variable));
            outPointerAndBytes.set(ValueLayout.JAVA_LONG_UNALIGNED, 8, variable.bytes());
            return CUDA_SUCCESS;
        });
    }

    @Override
    public long kernelHeapBytes() {
        return device.kernelHeapBytes();
    }

    @Override
    public List<ManagedVariables.Variable> variables(long handle) {
        List<ManagedVariables.Variable> variables = new ArrayList<>();
        int result = load(new StringBuilder(), () -> {
            LoadedModule module = device.module(handle);
            if (module == null) {
                return CUDA_ERROR_INVALID_HANDLE;
            }
            module.image.variables().stream().filter(variable -> !variable.managed() && variable.bytes() > 0)
                .forEach(variable -> variables.add(
                    new ManagedVariables.Variable(module.address(variable), variable.bytes())));
            return CUDA_SUCCESS;
        });
        return result == CUDA_SUCCESS ? variables : null;
    }

    @Override
    public ManagedVariables managedVariables() {
        return managedVariables;
    }

    private List<ManagedVariables.Variable> managedVariables(long handle) {
        List<ManagedVariables.Variable> variables = new ArrayList<>();
        load(new StringBuilder(), () -> {
            LoadedModule module = device.module(handle);
            if (module != null) {
                module.managedVariables().stream().filter(variable -> variable.bytes() > 0)
                    .map(variable -> new ManagedVariables.Variable(module.address(variable), variable.bytes()))
                    .forEach(variables::add);
            }
            return CUDA_SUCCESS;
        });
        return variables;
    }

    @Override
    public int copyHtoD(long destination, MemorySegment source, long streamHandle) {
        return driver.issueCopy(streamHandle, destination, source.byteSize(),
            source.byteSize() <= INLINE_COPY_BYTES, target -> target.copyFrom(source));
    }

    @Override
    public int copyDtoH(MemorySegment destination, long source, long streamHandle) {
        return driver.issueCopy(streamHandle, source, destination.byteSize(),
            destination.byteSize() <= INLINE_COPY_BYTES, destination::copyFrom);
    }

    @Override
    public int attachRegion(MemorySegment region) {
        return device.host.attach(region);
    }

    @Override
    public boolean canMapHost() {
        return device.host.isPossible();
    }

    @Override
    public int mapHost(MemorySegment part, MemorySegment out) {
        int result = device.host.map(part);
        if (result == CUDA_SUCCESS) {
            out.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, part.address());
        }
        return result;
    }

    @Override
    public int unmapHost(long deviceAddress) {
        return device.host.unmap(deviceAddress);
    }

    @Override
    public VirtualMemory virtualMemory() {
        return virtualMemory;
    }

    @Override
    public ArrayBackend arrays() {
        return arrays;
    }

    @Override
    public GreenContexts greenContexts() {
        return greenContexts;
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
    public MemorySegment allocateStaging(long bytes) {
        Arena arena = Arena.ofShared();
        MemorySegment segment = arena.allocate(bytes, 64);
        staging.put(segment.address(), arena);
        return segment;
    }

    @Override
    public void freeStaging(MemorySegment segment) {
        Arena arena = staging.remove(segment.address());
        if (arena == null) {
            throw new IllegalArgumentException("staging memory must come from allocateStaging: address="
                + segment.address());
        }
        arena.close();
    }

    @Override
    public int peerAttribute(int one, int other, int attribute, MemorySegment value) {
        boolean can = switch (attribute) {
            case 0, CUdevice_P2PAttribute.CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED,
                CUdevice_P2PAttribute.CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED -> one != other;
            default -> false; // the performance rank of all pairs is equal, and peers cannot share arrays
        };
        value.set(ValueLayout.JAVA_INT_UNALIGNED, 0, can ? 1 : 0);
        return CUDA_SUCCESS;
    }

    @Override
    public void output(Consumer<byte[]> sink) {
        device.setOutput(sink);
    }

    @Override
    public GraphBackend graphs() {
        return graphs;
    }

    @Override
    public boolean isPoisoned(int cuResult) {
        return switch (cuResult) {
            case DeviceFault.ILLEGAL_ADDRESS, DeviceFault.ASSERT, DeviceFault.ILLEGAL_INSTRUCTION,
                DeviceFault.MISALIGNED_ADDRESS, DeviceFault.INVALID_ADDRESS_SPACE, DeviceFault.INVALID_PC,
                DeviceFault.LAUNCH_FAILED -> true;
            default -> false;
        };
    }

    @Override
    public Signals signals() {
        return signals;
    }

    @Override
    public void close() {
        signals.end();
        device.close();
    }
}
