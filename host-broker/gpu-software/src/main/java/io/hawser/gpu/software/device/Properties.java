package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUdevice_attribute.*;

import io.hawser.cuda.generated.HwsDeviceInfo;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;

/** The attributes of the software GPU. An attribute that is not set here is 0: the device lacks the feature. */
final class Properties {
    static final String NAME = "Hawser software GPU";
    /** Compute capability 7.5, the lowest target of nvcc 13. The device runs few of the newer instructions. */
    static final int COMPUTE_CAPABILITY = 75;
    static final int WARP_SIZE = 32;
    static final int MAX_THREADS_PER_BLOCK = 1024;
    /** The limit unless a kernel sets CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES. */
    static final int SHARED_BYTES_PER_BLOCK = 48 << 10;
    static final int SHARED_BYTES_OPT_IN = 64 << 10;
    static final int SHARED_BYTES_PER_MULTIPROCESSOR = 64 << 10;
    static final int THREADS_PER_MULTIPROCESSOR = 1024;
    static final int BLOCKS_PER_MULTIPROCESSOR = 16;
    static final int REGISTERS_PER_MULTIPROCESSOR = 64 << 10;
    static final int MAX_GRID_X = Integer.MAX_VALUE;
    static final int MAX_GRID_YZ = 65535;

    static final int TEXTURE_BYTES = 512; // alignment of memory that a texture reads
    static final int TEXTURE_PITCH_BYTES = 32;

    private static final int ATTRIBUTES = 160;

    private Properties() {
    }

    /**
     * Fills a HwsDeviceInfo.
     *
     * @param ordinal number of the device on this machine.
     * @param mapsHost whether this session's kernels can access host memory, which needs a region.
     * @param mapsMemory whether virtual memory management is available.
     */
    static void describe(MemorySegment info, int ordinal, long totalBytes, int processors, boolean mapsHost,
        boolean mapsMemory) {
        info.asSlice(0, HwsDeviceInfo.BYTES).fill((byte) 0);
        info.setString(HwsDeviceInfo.NAME_OFFSET, NAME);
        UUID uuid = uuid(ordinal);
        ValueLayout.OfLong bigEndian = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(java.nio.ByteOrder.BIG_ENDIAN);
        info.set(bigEndian, HwsDeviceInfo.UUID_OFFSET, uuid.getMostSignificantBits());
        info.set(bigEndian, HwsDeviceInfo.UUID_OFFSET + 8L, uuid.getLeastSignificantBits());
        info.set(ValueLayout.JAVA_LONG_UNALIGNED, HwsDeviceInfo.TOTAL_BYTES_OFFSET, totalBytes);
        info.set(ValueLayout.JAVA_INT_UNALIGNED, HwsDeviceInfo.PCI_DEVICE_OFFSET, ordinal);
        info.set(ValueLayout.JAVA_INT_UNALIGNED, HwsDeviceInfo.ATTRIBUTE_COUNT_OFFSET, ATTRIBUTES);
        int[] attributes = attributes(ordinal, processors);
        attributes[CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY] = mapsHost ? 1 : 0;
        attributes[CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] = mapsMemory ? 1 : 0;
        attributes[CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED] = mapsMemory ? 1 : 0;
        for (int i = 0; i < attributes.length; i++) {
            info.set(ValueLayout.JAVA_INT_UNALIGNED, HwsDeviceInfo.ATTRIBUTES_OFFSET + 4L * i, attributes[i]);
        }
    }

    static UUID uuid(int ordinal) {
        return UUID.nameUUIDFromBytes((NAME + Machine.NAME + ordinal).getBytes(StandardCharsets.UTF_8));
    }

    /** Read once, before the jail: a jailed worker opens no file. */
    private static final class Machine {
        private static final String NAME = machine();
    }

    private static String machine() {
        Path id = Path.of("/etc/machine-id");
        try {
            if (Files.isReadable(id)) {
                return Files.readString(id);
            }
            return InetAddress.getLocalHost().getHostName();
        } catch (IOException e) {
            throw new UncheckedIOException("the machine must have an id or a host name", e);
        }
    }

    static int[] attributes(int ordinal, int processors) {
        int[] a = new int[ATTRIBUTES];
        a[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = MAX_THREADS_PER_BLOCK;
        a[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X] = 1024;
        a[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y] = 1024;
        a[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z] = 64;
        a[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X] = MAX_GRID_X;
        a[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y] = MAX_GRID_YZ;
        a[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z] = MAX_GRID_YZ;
        a[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK] = SHARED_BYTES_PER_BLOCK;
        a[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] = SHARED_BYTES_OPT_IN;
        a[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR] = SHARED_BYTES_PER_MULTIPROCESSOR;
        a[CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY] = 64 << 10;
        a[CU_DEVICE_ATTRIBUTE_WARP_SIZE] = WARP_SIZE;
        a[CU_DEVICE_ATTRIBUTE_MAX_PITCH] = Integer.MAX_VALUE;
        a[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK] = REGISTERS_PER_MULTIPROCESSOR;
        a[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR] = REGISTERS_PER_MULTIPROCESSOR;
        // %clock counts nanoseconds: with a clock rate of 1 GHz programs convert it correctly.
        a[CU_DEVICE_ATTRIBUTE_CLOCK_RATE] = 1_000_000;
        // The memory is the machine's. Programs compute a bandwidth from these two values, which describe no real
        // hardware.
        a[CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE] = 1_000_000;
        a[CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH] = 64;
        a[CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT] = TEXTURE_BYTES;
        a[CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT] = TEXTURE_PITCH_BYTES;
        a[CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT] = 512;
        ArrayMemory.describe(a);
        // Copies and kernels of different streams run in parallel.
        a[CU_DEVICE_ATTRIBUTE_GPU_OVERLAP] = 1;
        a[CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT] = 1;
        a[CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS] = 1;
        // Each processor of the machine is a multiprocessor.
        a[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = processors;
        a[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] = THREADS_PER_MULTIPROCESSOR;
        a[CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR] = BLOCKS_PER_MULTIPROCESSOR;
        a[CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE] = 1 << 20;
        a[CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING] = 1;
        a[CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID] = ordinal;
        a[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = COMPUTE_CAPABILITY / 10;
        a[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = COMPUTE_CAPABILITY % 10;
        a[CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED] = 0;
        a[CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED] = 1;
        a[CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED] = 1;
        a[CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO] = 1;
        a[CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH] = 1;
        a[CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] = 1;
        a[CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED] = 1;
        return a;
    }
}
