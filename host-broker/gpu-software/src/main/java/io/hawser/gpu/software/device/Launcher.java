package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUlaunchAttributeID.*;
import static io.hawser.cuda.generated.CUresult.*;

import io.hawser.cuda.generated.CUlaunchAttribute;
import io.hawser.gpu.software.compile.PtxKernel;
import io.hawser.gpu.software.exec.DeviceFault;
import io.hawser.gpu.software.exec.KernelLaunch;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Checks launches and issues them. */
final class Launcher {
    private static final System.Logger LOG = System.getLogger(Launcher.class.getName());
    private static final int COOPERATIVE = 1;
    // Grid synchronisation uses 8 bytes; the allocator's granule is 512.
    private static final int GRID_WORKSPACE_BYTES = 512;
    /**
     * A launch that always ends within this many steps runs on the issuing thread when it has no predecessors. This
     * takes a few microseconds, about as long as a hand-over to another thread. Other launches never run there: they
     * could wait for work that the issuing thread has yet to issue.
     */
    private static final long INLINE_STEPS = 8192;

    private final Device device;

    Launcher(Device device) {
        this.device = device;
    }

    /**
     * The arguments of a launch; see GpuBackend.launch.
     *
     * @param params copied by {@link #body}.
     */
    record Request(KernelFunction function, int[] grid, int[] block, int sharedBytes, int flags, MemorySegment params,
        MemorySegment attributes) {
        private long threads() {
            return (long) block[0] * block[1] * block[2];
        }

        boolean isCooperative() {
            return cooperative(attributes, flags) == COOPERATIVE;
        }
    }

    /** Whether the device supports such a launch: CUresult. */
    int check(Request request) {
        PtxKernel kernel = request.function.kernel;
        if (kernel.refusal() != null) {
            return kernel.refusal().cuResult();
        }
        int[] grid = request.grid;
        int[] block = request.block;
        int cooperative = cooperative(request.attributes, request.flags);
        if (cooperative < 0) {
            return CUDA_ERROR_NOT_SUPPORTED;
        }
        long threads = request.threads();
        if (outside(grid[0], Properties.MAX_GRID_X) || outside(grid[1], Properties.MAX_GRID_YZ)
            || outside(grid[2], Properties.MAX_GRID_YZ) || outside(block[0], 1024) || outside(block[1], 1024)
            || outside(block[2], 64) || threads > Properties.MAX_THREADS_PER_BLOCK || request.sharedBytes < 0
            || request.sharedBytes > request.function.maxDynamicSharedBytes
            || request.params.byteSize() < kernel.paramBytes()) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        int[] required = kernel.requiredBlock();
        if (required != null && (required[0] != block[0] || required[1] != block[1] || required[2] != block[2])) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (threads > kernel.maxThreadsPerBlock()) {
            return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
        }
        if (cooperative == COOPERATIVE) {
            long resident = (long) Occupancy.blocksPerMultiprocessor(request.function, (int) threads,
                request.sharedBytes) * device.scheduler.processors();
            if ((long) grid[0] * grid[1] * grid[2] > resident) {
                return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
            }
        }
        return CUDA_SUCCESS;
    }

    /** Issues a launch; see GpuBackend.launch. */
    int launch(Request request, Stream stream) {
        int check = check(request);
        if (check != CUDA_SUCCESS) {
            return check;
        }
        Context context = stream.context;
        if (!request.isCooperative()) {
            context.issue(stream, body(request, context, 0), isSmall(request));
            return CUDA_SUCCESS;
        }
        long workspace = workspace();
        if (workspace == 0) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        Work.Body body = body(request, context, workspace);
        context.issue(stream, () -> {
            body.run();
            device.giveBack(workspace);
        }, false);
        return CUDA_SUCCESS;
    }

    /** Allocates the device memory that a cooperative launch uses while it runs; 0 when there is no room. */
    long workspace() {
        return device.allocate(GRID_WORKSPACE_BYTES);
    }

    /**
     * The work of a checked launch, for one execution.
     *
     * @param workspace memory of a cooperative launch, from {@link #workspace}.
     */
    Work.Body body(Request request, Context context, long workspace) {
        int[] grid = request.grid;
        PtxKernel kernel = request.function.kernel;
        ChildLaunches children = kernel.launches()
            ? new ChildLaunches(this, device, context, request.function.module, 0) : null;
        KernelLaunch launch = prepare(request, context, children);
        Runnable whole;
        if (request.isCooperative()) {
            launch.gridWorkspace(workspace);
            whole = () -> {
                device.memory.arena().slice(workspace, GRID_WORKSPACE_BYTES).fill((byte) 0);
                device.scheduler.runCooperative(kernel, launch, grid[0], grid[1], grid[2], device.memory.arena());
            };
        } else {
            int processors = isSmall(request) ? 1 : context.processors;
            whole = () -> device.scheduler.runGrid(kernel, launch, grid[0], grid[1], grid[2], processors);
        }
        return () -> run(context, kernel, children == null ? whole : () -> children.runAfter(whole));
    }

    /** One execution of a checked request. */
    KernelLaunch prepare(Request request, Context context, ChildLaunches children) {
        int[] grid = request.grid;
        int[] block = request.block;
        return new KernelLaunch(grid[0], grid[1], grid[2], block[0], block[1], block[2], request.sharedBytes,
            request.params, device::output).heap(device.heap(context.limits[2])).children(children)
            .stackBytes((int) context.limits[0]);
    }

    private static boolean isSmall(Request request) {
        return request.function.kernel.endsWithin(request.threads() * request.grid[0],
            INLINE_STEPS / ((long) request.grid[1] * request.grid[2]));
    }

    private static void run(Context context, PtxKernel kernel, Runnable grid) {
        if (context.error() != 0) {
            return;
        }
        try {
            grid.run();
        } catch (DeviceFault e) {
            context.poison(e.cuResult());
            LOG.log(System.Logger.Level.WARNING, "kernel " + kernel.name() + " faulted, result " + e.cuResult() + ": "
                + e.getMessage());
        } catch (RuntimeException | Error e) {
            context.poison(CUDA_ERROR_LAUNCH_FAILED);
            LOG.log(System.Logger.Level.ERROR, "kernel " + kernel.name() + " could not be executed", e);
        }
    }

    private static boolean outside(int value, int limit) {
        return value < 1 || value > limit;
    }

    /** 1 for a cooperative launch, 0 for another, -1 for unsupported attributes. */
    private static int cooperative(MemorySegment attributes, int flags) {
        int result = flags & COOPERATIVE;
        for (long at = 0; at + CUlaunchAttribute.BYTES <= attributes.byteSize(); at += CUlaunchAttribute.BYTES) {
            int id = attributes.get(ValueLayout.JAVA_INT_UNALIGNED, at + CUlaunchAttribute.ID_OFFSET);
            long value = at + CUlaunchAttribute.VALUE_OFFSET;
            switch (id) {
                case CU_LAUNCH_ATTRIBUTE_COOPERATIVE ->
                    result |= attributes.get(ValueLayout.JAVA_INT_UNALIGNED, value) != 0 ? COOPERATIVE : 0;
                case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION -> {
                    if (attributes.get(ValueLayout.JAVA_INT_UNALIGNED, value) > 1
                        || attributes.get(ValueLayout.JAVA_INT_UNALIGNED, value + 4) > 1
                        || attributes.get(ValueLayout.JAVA_INT_UNALIGNED, value + 8) > 1) {
                        return -1;
                    }
                }
                // These need an event or a node in addition to the kernel.
                case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
                    CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE -> {
                    return -1;
                }
                // The other attributes are hints, or permissions to start early that the device may ignore.
                default -> {}
            }
        }
        return result;
    }
}
