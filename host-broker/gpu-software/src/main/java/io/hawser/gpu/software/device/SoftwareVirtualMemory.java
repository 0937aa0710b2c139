package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;

import io.hawser.cuda.backend.VirtualMemory;
import io.hawser.gpu.software.exec.MemoryFile;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.Map;

/**
 * Virtual memory management. Memory is an unnamed file, mapped at the guest's chosen address inside a reserved part of
 * this process's address space. The shadow spans all addresses and opens the mapped ones to kernels. Decoder's thread
 * only.
 */
final class SoftwareVirtualMemory implements VirtualMemory {
    /** The granularity of NVIDIA GPUs, so that programs meet the same rules. */
    static final long GRANULARITY_BYTES = 2 << 20;
    private static final int ACCESS_NONE = 0; // CUmemAccess_flags
    private static final int ACCESS_READ = 1;

    private final DeviceMemory memory;
    private final Map<Long, MemoryFile> files = new HashMap<>();
    private long lastHandle;

    private SoftwareVirtualMemory(DeviceMemory memory) {
        this.memory = memory;
    }

    /** Returns null where the shadow does not span all addresses. */
    static SoftwareVirtualMemory of(DeviceMemory memory) {
        return memory.arena().canMapHost() ? new SoftwareVirtualMemory(memory) : null;
    }

    @Override
    public int granularity(int device, int compression, int usage, int option, MemorySegment out) {
        out.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, GRANULARITY_BYTES);
        return CUDA_SUCCESS;
    }

    @Override
    public int reserve(long bytes, long alignment, long wanted, MemorySegment out) {
        if (bytes <= 0 || bytes % GRANULARITY_BYTES != 0 || Long.bitCount(alignment) > 1 || alignment < 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        long address = memory.arena().reserveAddresses(bytes, Math.max(alignment, GRANULARITY_BYTES), wanted);
        if (address == 0) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        out.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, address);
        return CUDA_SUCCESS;
    }

    @Override
    public int unreserve(long address, long bytes) {
        memory.arena().unreserveAddresses(address, bytes);
        return CUDA_SUCCESS;
    }

    @Override
    public int create(long bytes, int device, int compression, int usage, MemorySegment out) {
        if (bytes % GRANULARITY_BYTES != 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (!memory.charge(bytes)) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        MemoryFile file = MemoryFile.create(bytes);
        if (file == null) {
            memory.charge(-bytes);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        files.put(++lastHandle, file);
        out.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, lastHandle);
        out.set(ValueLayout.JAVA_INT_UNALIGNED, Long.BYTES, 0);
        return CUDA_SUCCESS;
    }

    @Override
    public boolean servesAdapters(int device) {
        return true;
    }

    /** The file serves as one. Only a device for tests takes it; the kernel's adapters refuse it. */
    @Override
    public int dmaBuf(long address, long bytes, long handle, MemorySegment out) {
        return share(handle, out);
    }

    @Override
    public boolean opensBlocks() {
        return true; // kernels fault behind the last byte of an allocation
    }

    @Override
    public void openBlock(long address, long bytes) {
        memory.arena().openAddresses(address, bytes);
    }

    @Override
    public void closeBlock(long address, long bytes) {
        memory.arena().closeAddresses(address, bytes);
    }

    @Override
    public int release(long handle) {
        MemoryFile file = files.remove(handle);
        if (file == null) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        file.close();
        if (!file.isOpened()) {
            memory.charge(-file.bytes());
        }
        return CUDA_SUCCESS;
    }

    @Override
    public int share(long handle, MemorySegment out) {
        MemoryFile file = files.get(handle);
        int descriptor = file == null ? -1 : file.duplicate();
        out.set(ValueLayout.JAVA_INT_UNALIGNED, 0, descriptor);
        return file == null ? CUDA_ERROR_INVALID_VALUE : descriptor < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    }

    @Override
    public int open(int descriptor, long bytes, MemorySegment out) {
        MemoryFile file = bytes <= 0 || bytes % GRANULARITY_BYTES != 0 ? null : MemoryFile.open(descriptor, bytes);
        if (file == null) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        files.put(++lastHandle, file);
        out.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, lastHandle);
        out.set(ValueLayout.JAVA_INT_UNALIGNED, Long.BYTES, 0);
        return CUDA_SUCCESS;
    }

    @Override
    public int map(long address, long bytes, long offset, long handle) {
        MemoryFile file = files.get(handle);
        if (file == null || (address | bytes | offset) % GRANULARITY_BYTES != 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        return file.map(address, bytes, offset) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }

    @Override
    public int unmap(long address, long bytes) {
        memory.arena().closeAddresses(address, bytes);
        // Private pages replace the file's pages, so that a thread that is late meets no unmapped address.
        return MemoryFile.unmap(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }

    @Override
    public int setAccess(long address, long bytes, int device, int flags) {
        if (flags == ACCESS_READ) {
            return CUDA_ERROR_NOT_SUPPORTED; // the shadow can only allow or forbid all access
        }
        if (flags == ACCESS_NONE) {
            memory.arena().closeAddresses(address, bytes);
        } else {
            memory.arena().openAddresses(address, bytes);
        }
        return CUDA_SUCCESS;
    }
}
