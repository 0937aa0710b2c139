package io.hawser.gpu.software.exec;

/**
 * The functions of libcudadevrt, with which kernels launch kernels. Children run after their parent's grid, one after
 * the other in the order of their launches. All orders by streams and events hold then, so these objects carry no
 * state. Results are cudaError_t.
 */
public final class DeviceRuntime {
    // CUDA 13.0 driver_types.h, cudaError_t.
    private static final int SUCCESS = 0;
    private static final int INVALID_VALUE = 1;
    private static final int MEMORY_ALLOCATION = 2;
    private static final int INVALID_DEVICE_FUNCTION = 98;
    private static final int NON_BLOCKING = 1; // cudaStreamNonBlocking, the only kind of stream that kernels create
    private static final long OBJECT = 0x1000; // any number but those of CUDA's own streams

    private DeviceRuntime() {
    }

    private static int failed(CtaSlot c, int t, int error) {
        if (error != SUCCESS) {
            c.setLastError(t, error);
        }
        return error;
    }

    /** Offsets in local memory hold the dimensions of dim3 arguments. */
    private static int dimension(CtaSlot c, int t, int dim3, int index) {
        return Window.ld32(c.local[t], dim3, index);
    }

    static long getParameterBuffer(Globals g, CtaSlot c, int t, long alignment, long bytes) {
        long buffer = alignment > GlobalMemory.GRANULE_BYTES || bytes < 0 ? 0 : c.launch.children.buffer(bytes);
        failed(c, t, buffer == 0 ? MEMORY_ALLOCATION : SUCCESS);
        return buffer;
    }

    static long getParameterBufferV2(Globals g, CtaSlot c, int t, long function, int grid, int block, int shared) {
        int bytes = c.launch.children.paramBytes(function);
        if (bytes < 0) {
            failed(c, t, INVALID_DEVICE_FUNCTION);
            return 0;
        }
        long buffer = c.launch.children.buffer(bytes);
        if (buffer == 0) {
            failed(c, t, MEMORY_ALLOCATION);
        } else {
            c.launch.children.configure(buffer, config(c, t, function, grid, block, shared));
        }
        return buffer;
    }

    private static KernelLaunch.Child config(CtaSlot c, int t, long function, int grid, int block, int shared) {
        return new KernelLaunch.Child(function, dimension(c, t, grid, 0), dimension(c, t, grid, 1),
            dimension(c, t, grid, 2), dimension(c, t, block, 0), dimension(c, t, block, 1), dimension(c, t, block, 2),
            shared);
    }

    static int launchDevice(Globals g, CtaSlot c, int t, long function, long buffer, int grid, int block, int shared,
        long stream) {
        return failed(c, t, c.launch.children.launch(config(c, t, function, grid, block, shared), buffer, stream));
    }

    static int launchDeviceV2(Globals g, CtaSlot c, int t, long buffer, long stream) {
        return failed(c, t, c.launch.children.launch(null, buffer, stream));
    }

    static int getLastError(Globals g, CtaSlot c, int t) {
        int error = c.lastError(t);
        c.setLastError(t, SUCCESS);
        return error;
    }

    static int peekAtLastError(Globals g, CtaSlot c, int t) {
        return c.lastError(t);
    }

    static int streamCreateWithFlags(Globals g, CtaSlot c, int t, long stream, int flags) {
        if (flags != NON_BLOCKING) {
            return failed(c, t, INVALID_VALUE);
        }
        Mem.st64(g, c, t, stream, OBJECT);
        return SUCCESS;
    }

    static int streamDestroy(Globals g, CtaSlot c, int t, long stream) {
        return SUCCESS;
    }

    static int streamWaitEvent(Globals g, CtaSlot c, int t, long stream, long event, int flags) {
        return SUCCESS;
    }

    static int eventCreateWithFlags(Globals g, CtaSlot c, int t, long event, int flags) {
        Mem.st64(g, c, t, event, OBJECT);
        return SUCCESS;
    }

    static int eventRecord(Globals g, CtaSlot c, int t, long event, long stream) {
        return SUCCESS;
    }

    static int eventRecordWithFlags(Globals g, CtaSlot c, int t, long event, long stream, int flags) {
        return SUCCESS;
    }

    static int eventDestroy(Globals g, CtaSlot c, int t, long event) {
        return SUCCESS;
    }

    static int memcpyAsync(Globals g, CtaSlot c, int t, long to, long from, long bytes, int kind, long stream) {
        return failed(c, t, c.launch.children.copy(to, from, bytes, stream));
    }

    static int memsetAsync(Globals g, CtaSlot c, int t, long to, int value, long bytes, long stream) {
        return failed(c, t, c.launch.children.fill(to, value, bytes, stream));
    }

    static int malloc(Globals g, CtaSlot c, int t, long pointer, long bytes) {
        long address = Builtins.malloc(g, c, t, bytes);
        Mem.st64(g, c, t, pointer, address);
        return failed(c, t, address == 0 ? MEMORY_ALLOCATION : SUCCESS);
    }

    static int free(Globals g, CtaSlot c, int t, long address) {
        Builtins.free(g, c, t, address);
        return SUCCESS;
    }
}
