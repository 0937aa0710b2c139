package io.hawser.broker.nvml;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemoryLayout;
import java.lang.foreign.StructLayout;

/**
 * Constants and structures of NVML, under the names of its header. {@code NvmlHeaderTest} compares them with the header
 * where it is installed. Source: CUDA 12 and 13, nvml.h, whose structures of these versions never change.
 */
final class NvmlLayout {
    static final int NVML_SUCCESS = 0;
    static final int NVML_ERROR_UNINITIALIZED = 1;
    static final int NVML_ERROR_NOT_SUPPORTED = 3;
    static final int NVML_ERROR_INSUFFICIENT_SIZE = 7;
    static final int NVML_ERROR_TIMEOUT = 10;
    static final int NVML_ERROR_FUNCTION_NOT_FOUND = 13;
    static final int NVML_ERROR_GPU_IS_LOST = 15;
    static final int NVML_ERROR_RESET_REQUIRED = 16;

    static final int NVML_DEVICE_UUID_V2_BUFFER_SIZE = 96;
    static final int NVML_TEMPERATURE_GPU = 0;
    static final long NVML_EVENT_TYPE_XID_CRITICAL_ERROR = 8; // nvmlEventTypeXidCriticalError
    static final long NVML_VALUE_NOT_AVAILABLE = -1;

    /** {@code nvmlMemory_t}; {@code used} includes the driver's own memory. */
    static final StructLayout MEMORY = MemoryLayout.structLayout(JAVA_LONG.withName("total"),
        JAVA_LONG.withName("free"), JAVA_LONG.withName("used"));
    /** {@code nvmlMemory_v2_t}. */
    static final StructLayout MEMORY_V2 = MemoryLayout.structLayout(JAVA_INT.withName("version"),
        MemoryLayout.paddingLayout(4), JAVA_LONG.withName("total"), JAVA_LONG.withName("reserved"),
        JAVA_LONG.withName("free"), JAVA_LONG.withName("used"));
    /** {@code nvmlMemory_v2}: the size of the structure, and its version in the highest byte. */
    static final int MEMORY_V2_VERSION = (int) MEMORY_V2.byteSize() | 2 << 24;
    /** {@code nvmlUtilization_t}. */
    static final StructLayout UTILIZATION = MemoryLayout.structLayout(JAVA_INT.withName("gpu"),
        JAVA_INT.withName("memory"));
    /** {@code nvmlProcessInfo_v1_t}. */
    static final StructLayout PROCESS_INFO_V1 = MemoryLayout.structLayout(JAVA_INT.withName("pid"),
        MemoryLayout.paddingLayout(4), JAVA_LONG.withName("usedGpuMemory"));
    /** {@code nvmlProcessInfo_v2_t}, also used by the functions of version 3. */
    static final StructLayout PROCESS_INFO_V2 = MemoryLayout.structLayout(JAVA_INT.withName("pid"),
        MemoryLayout.paddingLayout(4), JAVA_LONG.withName("usedGpuMemory"), JAVA_INT.withName("gpuInstanceId"),
        JAVA_INT.withName("computeInstanceId"));
    /** {@code nvmlEventData_t}. */
    static final StructLayout EVENT_DATA = MemoryLayout.structLayout(ADDRESS.withName("device"),
        JAVA_LONG.withName("eventType"), JAVA_LONG.withName("eventData"), JAVA_INT.withName("gpuInstanceId"),
        JAVA_INT.withName("computeInstanceId"));

    private NvmlLayout() {
    }

    /** Offset of a member in bytes. */
    static long offset(StructLayout structure, String member) {
        return structure.byteOffset(MemoryLayout.PathElement.groupElement(member));
    }
}
