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
    // Grid synchronisation uses 8 bytes; a granule is what the allocator gives anyway.
    private static final int GRID_WORKSPACE_BYTES = 512;
    /**
     * Launches that are sure to end within this many steps run on the issuing thread when nothing is before them: some
     * microseconds, about what a hand-over to another thread costs. Others never do: they could wait for what the
     * issuing thread has yet to issue.
     */
    private static final long INLINE_STEPS = 8192;

    private final Device device;

    Launcher(Device device) {
        this.device = device;
    }

    /** Issues a launch; see GpuBackend.launch. */
    int launch(KernelFunction function, int[] grid, int[] block, int sharedBytes, Stream stream, int flags,
               MemorySegment packedParams, MemorySegment attributes) {
        PtxKernel kernel = function.kernel;
        int cooperative = cooperative(attributes, flags);
        if (cooperative < 0) {
            return CUDA_ERROR_NOT_SUPPORTED;
        }
        long threads = (long) block[0] * block[1] * block[2];
        if (outside(grid[0], Properties.MAX_GRID_X) || outside(grid[1], Properties.MAX_GRID_YZ)
            || outside(grid[2], Properties.MAX_GRID_YZ) || outside(block[0], 1024) || outside(block[1], 1024)
            || outside(block[2], 64) || threads > Properties.MAX_THREADS_PER_BLOCK || sharedBytes < 0
            || sharedBytes > function.maxDynamicSharedBytes || packedParams.byteSize() < kernel.paramBytes()) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        int[] required = kernel.requiredBlock();
        if (required != null && (required[0] != block[0] || required[1] != block[1] || required[2] != block[2])) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (threads > kernel.maxThreadsPerBlock()) {
            return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
        }
        KernelLaunch launch = new KernelLaunch(grid[0], grid[1], grid[2], block[0], block[1], block[2], sharedBytes,
            packedParams, device::output);
        Context context = stream.context;
        launch.heap(device.heap(context.limits[2])).stackBytes((int) context.limits[0]);
        if (cooperative == COOPERATIVE) {
            return launchCooperative(function, launch, grid, (int) threads, sharedBytes, stream);
        }
        boolean small = kernel.endsWithin(threads * grid[0], INLINE_STEPS / ((long) grid[1] * grid[2]));
        context.issue(stream, () -> run(context, kernel, () ->
            device.scheduler.runGrid(kernel, launch, grid[0], grid[1], grid[2], !small)), small);
        return CUDA_SUCCESS;
    }

    private int launchCooperative(KernelFunction function, KernelLaunch launch, int[] grid, int threads,
                                  int sharedBytes, Stream stream) {
        long resident = (long) Occupancy.blocksPerMultiprocessor(function, threads, sharedBytes)
            * device.scheduler.processors();
        if ((long) grid[0] * grid[1] * grid[2] > resident) {
            return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
        }
        long workspace = device.allocate(GRID_WORKSPACE_BYTES);
        if (workspace == 0) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        device.memory.arena().slice(workspace, GRID_WORKSPACE_BYTES).fill((byte) 0);
        launch.gridWorkspace(workspace);
        Context context = stream.context;
        context.issue(stream, () -> {
            run(context, function.kernel, () -> device.scheduler.runCooperative(function.kernel, launch, grid[0],
                grid[1], grid[2], device.memory.arena()));
            device.memory.free(workspace);
        }, false);
        return CUDA_SUCCESS;
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

    /** 1 for a cooperative launch, 0 for another, -1 for attributes that the device does not do. */
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
                // These ask for an event or a node besides the kernel.
                case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
                    CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE -> {
                    return -1;
                }
                // The others are hints, or permissions to start early that need not be used.
                default -> { }
            }
        }
        return result;
    }
}
