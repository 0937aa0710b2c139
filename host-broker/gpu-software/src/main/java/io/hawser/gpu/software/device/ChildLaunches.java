package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;

import io.hawser.gpu.software.compile.PtxKernel;
import io.hawser.gpu.software.exec.DeviceFault;
import io.hawser.gpu.software.exec.KernelLaunch;
import io.hawser.gpu.software.exec.KernelLaunch.Child;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The work that the threads of one grid launch. It begins when the grid has ended, and the grid counts as complete when
 * all of it is complete. CUDA allows this order, because a kernel cannot wait for its children. Work of the tail stream
 * comes last. Any thread that runs a CTA adds work; one thread runs it.
 */
final class ChildLaunches implements KernelLaunch.Children {
    // CUDA 13.0 driver_types.h.
    private static final int INVALID_VALUE = 1; // cudaErrorInvalidValue
    private static final int INVALID_CONFIGURATION = 9; // cudaErrorInvalidConfiguration
    private static final int MAX_DEPTH_EXCEEDED = 65; // cudaErrorLaunchMaxDepthExceeded
    private static final int PENDING_COUNT_EXCEEDED = 69; // cudaErrorLaunchPendingCountExceeded
    private static final int INVALID_DEVICE_FUNCTION = 98; // cudaErrorInvalidDeviceFunction
    private static final long TAIL_STREAM = 3; // cudaStreamTailLaunch
    /** CUDA programming guide: the depth of nested launches. */
    private static final int MAX_DEPTH = 24;
    // Kernels of a guest choose the number, and each costs memory of the worker.
    private static final int MAX_PENDING = 1 << 16;
    // Of a buffer without a stored launch, and of one whose launch is pending.
    private static final Child NONE = new Child(0, 0, 0, 0, 0, 0, 0, 0);
    private static final Child PENDING = new Child(0, 1, 0, 0, 0, 0, 0, 0);

    private final Launcher launcher;
    private final Device device;
    private final Context context;
    private final LoadedModule module;
    private final int depth;
    private final Map<Long, Child> buffers = new ConcurrentHashMap<>(); // by address
    private final Queue<Item> children = new ConcurrentLinkedQueue<>();
    private final Queue<Item> tails = new ConcurrentLinkedQueue<>();
    private final AtomicInteger pending = new AtomicInteger();

    /** Runs one piece of work; returns what it launched itself, or null. */
    private interface Item {
        ChildLaunches run();
    }

    /** @param depth of the grid: 0 for a grid that the host launched. */
    ChildLaunches(Launcher launcher, Device device, Context context, LoadedModule module, int depth) {
        this.launcher = launcher;
        this.device = device;
        this.context = context;
        this.module = module;
        this.depth = depth;
    }

    @Override
    public int paramBytes(long function) {
        PtxKernel kernel = module.image.kernelAt(function);
        return kernel == null ? -1 : kernel.paramBytes();
    }

    @Override
    public long buffer(long bytes) {
        long address = buffers.size() >= MAX_PENDING ? 0 : device.memory.allocate(Math.max(1, bytes));
        if (address != 0) {
            buffers.put(address, NONE);
        }
        return address;
    }

    @Override
    public void configure(long buffer, Child child) {
        buffers.put(buffer, child);
    }

    @Override
    public int launch(Child given, long buffer, long stream) {
        Child known = buffer == 0 && given != null ? NONE : buffers.get(buffer);
        Child child = given == null ? known : given;
        if (known == null || known == PENDING || child == NONE) {
            return INVALID_VALUE;
        }
        PtxKernel kernel = module.image.kernelAt(child.function());
        if (kernel == null) {
            return INVALID_DEVICE_FUNCTION;
        }
        int bytes = kernel.paramBytes();
        if (bytes > 0 && device.memory.sizeOf(buffer) < bytes) {
            return INVALID_VALUE;
        }
        MemorySegment params = bytes == 0 ? MemorySegment.ofArray(new byte[0])
            : device.memory.arena().slice(buffer, bytes);
        Launcher.Request request = new Launcher.Request(new KernelFunction(module, kernel),
            new int[] {child.gridX(), child.gridY(), child.gridZ()},
            new int[] {child.blockX(), child.blockY(), child.blockZ()}, child.sharedBytes(), 0, params,
            MemorySegment.NULL);
        int check = launcher.check(request);
        if (check == CUDA_ERROR_NOT_SUPPORTED) {
            // Kernels often ignore the result of a launch: their results would be wrong without an error.
            throw new DeviceFault(check, "a launched kernel is refused: " + kernel.refusal().getMessage());
        }
        if (check != CUDA_SUCCESS) {
            return check == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES ? check : INVALID_CONFIGURATION;
        }
        if (depth + 1 > MAX_DEPTH && stream != TAIL_STREAM) {
            return MAX_DEPTH_EXCEEDED;
        }
        int result = add(stream, () -> run(request, stream == TAIL_STREAM ? depth : depth + 1, buffer));
        if (result == 0 && buffer != 0) {
            buffers.put(buffer, PENDING);
        }
        return result;
    }

    private ChildLaunches run(Launcher.Request request, int childDepth, long buffer) {
        ChildLaunches launched = new ChildLaunches(launcher, device, context, module, childDepth);
        KernelLaunch launch = launcher.prepare(request, context, launched);
        if (buffer != 0) {
            buffers.remove(buffer);
            device.memory.free(buffer);
        }
        try {
            int[] grid = request.grid();
            device.scheduler.runGrid(request.function().kernel, launch, grid[0], grid[1], grid[2],
                context.processors);
        } catch (DeviceFault e) {
            launched.close();
            throw e;
        }
        return launched;
    }

    @Override
    public int copy(long to, long from, long bytes, long stream) {
        return add(stream, () -> {
            slice(to, bytes).copyFrom(slice(from, bytes));
            return null;
        });
    }

    @Override
    public int fill(long to, int value, long bytes, long stream) {
        return add(stream, () -> {
            slice(to, bytes).fill((byte) value);
            return null;
        });
    }

    private MemorySegment slice(long address, long bytes) {
        if (bytes < 0 || !device.memory.arena().isAllocated(address, bytes)) {
            throw new DeviceFault(DeviceFault.ILLEGAL_ADDRESS, "copy of a kernel must lie inside an allocation: "
                + "address=0x" + Long.toHexString(address) + " bytes=" + bytes);
        }
        return bytes == 0 ? MemorySegment.NULL : device.memory.arena().slice(address, bytes);
    }

    private int add(long stream, Item item) {
        if (pending.incrementAndGet() > MAX_PENDING) {
            return PENDING_COUNT_EXCEEDED;
        }
        (stream == TAIL_STREAM ? tails : children).add(item);
        return 0;
    }

    /** Runs the grid, then all work that it has launched, and the work that this work launches. */
    void runAfter(Runnable grid) {
        Deque<ChildLaunches> open = new ArrayDeque<>();
        open.push(this);
        try {
            grid.run();
            while (!open.isEmpty()) {
                ChildLaunches first = open.peek();
                Item next = first.children.poll();
                if (next == null) {
                    next = first.tails.poll();
                    if (first.tails.isEmpty()) {
                        // The last tail takes its grid's place: kernels may go on by tail launches for ever.
                        open.pop().close();
                    }
                }
                ChildLaunches launched = next == null ? null : next.run();
                if (launched != null) {
                    open.push(launched);
                }
            }
        } finally {
            open.forEach(ChildLaunches::close);
        }
    }

    /** Frees the parameters of launches that have not run. */
    private void close() {
        buffers.keySet().forEach(device.memory::free);
        buffers.clear();
    }
}
