package io.hawser.gpu.nvidia;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.hawser.cuda.backend.MemorySharing;
import io.hawser.cuda.backend.NativeLibrary;
import io.hawser.cuda.generated.CUresult;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** The driver's sharing of memory and events between processes. Session thread only. */
final class NvidiaMemorySharing implements MemorySharing {
    private static final NativeLibrary LIBRARY = NativeLibrary.open(NvidiaProvider.LIBRARY);
    private static final MemoryLayout HANDLE = MemoryLayout.structLayout(
        MemoryLayout.sequenceLayout(HANDLE_BYTES, JAVA_BYTE)); // CUipcMemHandle, CUipcEventHandle, passed by value
    private static final MethodHandle CU_IPC_GET_MEM_HANDLE = find("cuIpcGetMemHandle", ADDRESS, JAVA_LONG);
    private static final MethodHandle CU_IPC_OPEN_MEM_HANDLE_V2 = find("cuIpcOpenMemHandle_v2", ADDRESS, HANDLE,
        JAVA_INT);
    private static final MethodHandle CU_IPC_CLOSE_MEM_HANDLE = find("cuIpcCloseMemHandle", JAVA_LONG);
    private static final MethodHandle CU_MEM_GET_ADDRESS_RANGE_V2 = find("cuMemGetAddressRange_v2", ADDRESS, ADDRESS,
        JAVA_LONG);
    private static final MethodHandle CU_IPC_GET_EVENT_HANDLE = find("cuIpcGetEventHandle", ADDRESS, JAVA_LONG);
    private static final MethodHandle CU_IPC_OPEN_EVENT_HANDLE = find("cuIpcOpenEventHandle", ADDRESS, HANDLE);
    // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, the only value that CUDA accepts
    private static final int LAZY_ENABLE_PEER_ACCESS = 1;

    private boolean hasEvents = true;

    private static MethodHandle find(String symbol, MemoryLayout... parameters) {
        return LIBRARY.find(symbol, CUresult.CUDA_ERROR_NOT_SUPPORTED, parameters);
    }

    @Override
    public int share(long address, MemorySegment out) {
        try {
            return (int) CU_IPC_GET_MEM_HANDLE.invokeExact(out, address);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    @Override
    public int open(MemorySegment handle, MemorySegment out) {
        try {
            int result = (int) CU_IPC_OPEN_MEM_HANDLE_V2.invokeExact(out, handle, LAZY_ENABLE_PEER_ACCESS);
            if (result != 0) {
                return result;
            }
            long address = out.get(JAVA_LONG, 0);
            result = mappedFrom(address, out.asSlice(Long.BYTES));
            if (result != 0) {
                close(address);
            }
            return result;
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    /**
     * The length from an address to the end of its allocation, from this process's driver. The length that another
     * session reports is not trusted.
     */
    private static int mappedFrom(long address, MemorySegment out) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment range = arena.allocate(2 * Long.BYTES, Long.BYTES);
            int result = (int) CU_MEM_GET_ADDRESS_RANGE_V2.invokeExact(range, range.asSlice(Long.BYTES), address);
            out.set(JAVA_LONG, 0, range.get(JAVA_LONG, 0) + range.get(JAVA_LONG, Long.BYTES) - address);
            return result;
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    @Override
    public int close(long address) {
        try {
            return (int) CU_IPC_CLOSE_MEM_HANDLE.invokeExact(address);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    /** Disables the sharing of events permanently. */
    void disableEvents() {
        hasEvents = false;
    }

    @Override
    public int shareEvent(long event, MemorySegment out) {
        if (!hasEvents) {
            return CUresult.CUDA_ERROR_NOT_SUPPORTED;
        }
        try {
            return (int) CU_IPC_GET_EVENT_HANDLE.invokeExact(out, event);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    @Override
    public int openEvent(MemorySegment handle, MemorySegment out) {
        if (!hasEvents) {
            return CUresult.CUDA_ERROR_NOT_SUPPORTED;
        }
        try {
            return (int) CU_IPC_OPEN_EVENT_HANDLE.invokeExact(out, handle);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }
}
