package io.hawser.gpu.nvidia;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.hawser.cuda.backend.NativeLibrary;
import io.hawser.cuda.generated.CUresult;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * Functions of the Driver API that the worker needs in addition to {@code CudaForeign}, with CUDA's names and C's
 * parameters. A function that the installed driver lacks returns CUDA_ERROR_NOT_SUPPORTED. Any thread.
 */
final class Driver {
    private static final NativeLibrary LIBRARY = NativeLibrary.open(NvidiaProvider.LIBRARY);

    private static final MethodHandle CU_INIT = find("cuInit", JAVA_INT);
    private static final MethodHandle CU_DRIVER_GET_VERSION = find("cuDriverGetVersion", ADDRESS);
    private static final MethodHandle CU_DEVICE_GET_COUNT = find("cuDeviceGetCount", ADDRESS);
    private static final MethodHandle CU_DEVICE_GET = find("cuDeviceGet", ADDRESS, JAVA_INT);
    private static final MethodHandle CU_DEVICE_GET_NAME = find("cuDeviceGetName", ADDRESS, JAVA_INT, JAVA_INT);
    private static final MethodHandle CU_DEVICE_GET_UUID_V2 = find("cuDeviceGetUuid_v2", ADDRESS, JAVA_INT);
    private static final MethodHandle CU_DEVICE_TOTAL_MEM_V2 = find("cuDeviceTotalMem_v2", ADDRESS, JAVA_INT);
    private static final MethodHandle CU_DEVICE_GET_ATTRIBUTE = find("cuDeviceGetAttribute", ADDRESS, JAVA_INT,
        JAVA_INT);
    private static final MethodHandle CU_DEVICE_CAN_ACCESS_PEER = find("cuDeviceCanAccessPeer", ADDRESS, JAVA_INT,
        JAVA_INT);
    private static final MethodHandle CU_DEVICE_GET_P2P_ATTRIBUTE = find("cuDeviceGetP2PAttribute", ADDRESS, JAVA_INT,
        JAVA_INT, JAVA_INT);
    private static final MethodHandle CU_DEVICE_PRIMARY_CTX_RETAIN = find("cuDevicePrimaryCtxRetain", ADDRESS,
        JAVA_INT);
    private static final MethodHandle CU_DEVICE_PRIMARY_CTX_RESET_V2 = find("cuDevicePrimaryCtxReset_v2", JAVA_INT);
    private static final MethodHandle CU_DEVICE_PRIMARY_CTX_SET_FLAGS_V2 = find("cuDevicePrimaryCtxSetFlags_v2",
        JAVA_INT, JAVA_INT);
    private static final MethodHandle CU_CTX_CREATE_V2 = find("cuCtxCreate_v2", ADDRESS, JAVA_INT, JAVA_INT);
    private static final MethodHandle CU_CTX_DESTROY_V2 = find("cuCtxDestroy_v2", JAVA_LONG);
    private static final MethodHandle CU_CTX_SET_CURRENT = find("cuCtxSetCurrent", JAVA_LONG);
    private static final MethodHandle CU_CTX_PUSH_CURRENT_V2 = find("cuCtxPushCurrent_v2", JAVA_LONG);
    private static final MethodHandle CU_CTX_POP_CURRENT_V2 = find("cuCtxPopCurrent_v2", ADDRESS);
    private static final MethodHandle CU_CTX_RECORD_EVENT = find("cuCtxRecordEvent", JAVA_LONG, JAVA_LONG);
    private static final MethodHandle CU_MODULE_LOAD_DATA_EX = find("cuModuleLoadDataEx", ADDRESS, ADDRESS,
        JAVA_INT, ADDRESS, ADDRESS);
    private static final MethodHandle CU_LIBRARY_LOAD_DATA = find("cuLibraryLoadData", ADDRESS, ADDRESS, ADDRESS,
        ADDRESS, JAVA_INT, ADDRESS, ADDRESS, JAVA_INT);
    private static final MethodHandle CU_LIBRARY_GET_MODULE = find("cuLibraryGetModule", ADDRESS, JAVA_LONG);
    private static final MethodHandle CU_LIBRARY_UNLOAD = find("cuLibraryUnload", JAVA_LONG);
    private static final MethodHandle CU_MODULE_UNLOAD = find("cuModuleUnload", JAVA_LONG);
    private static final MethodHandle CU_MODULE_GET_FUNCTION = find("cuModuleGetFunction", ADDRESS, JAVA_LONG, ADDRESS);
    private static final MethodHandle CU_MODULE_GET_FUNCTION_COUNT = find("cuModuleGetFunctionCount", ADDRESS,
        JAVA_LONG);
    private static final MethodHandle CU_MODULE_ENUMERATE_FUNCTIONS = find("cuModuleEnumerateFunctions", ADDRESS,
        JAVA_INT, JAVA_LONG);
    private static final MethodHandle CU_MODULE_GET_GLOBAL_V2 = find("cuModuleGetGlobal_v2", ADDRESS, ADDRESS,
        JAVA_LONG, ADDRESS);
    private static final MethodHandle CU_FUNC_GET_NAME = find("cuFuncGetName", ADDRESS, JAVA_LONG);
    private static final MethodHandle CU_FUNC_GET_ATTRIBUTE = find("cuFuncGetAttribute", ADDRESS, JAVA_INT, JAVA_LONG);
    private static final MethodHandle CU_FUNC_GET_PARAM_INFO = find("cuFuncGetParamInfo", JAVA_LONG, JAVA_LONG,
        ADDRESS, ADDRESS);
    private static final MethodHandle CU_LAUNCH_KERNEL_EX = find("cuLaunchKernelEx", ADDRESS, JAVA_LONG, ADDRESS,
        ADDRESS);
    private static final MethodHandle CU_LAUNCH_HOST_FUNC = find("cuLaunchHostFunc", JAVA_LONG, ADDRESS, JAVA_LONG);
    private static final MethodHandle CU_MEMCPY_HTO_DASYNC_V2 = find("cuMemcpyHtoDAsync_v2", JAVA_LONG, ADDRESS,
        JAVA_LONG, JAVA_LONG);
    private static final MethodHandle CU_MEMCPY_DTO_HASYNC_V2 = find("cuMemcpyDtoHAsync_v2", ADDRESS, JAVA_LONG,
        JAVA_LONG, JAVA_LONG);
    private static final MethodHandle CU_MEM_HOST_ALLOC = find("cuMemHostAlloc", ADDRESS, JAVA_LONG, JAVA_INT);
    private static final MethodHandle CU_MEM_FREE_HOST = find("cuMemFreeHost", ADDRESS);
    private static final MethodHandle CU_MEM_HOST_REGISTER_V2 = find("cuMemHostRegister_v2", ADDRESS, JAVA_LONG,
        JAVA_INT);
    private static final MethodHandle CU_MEM_HOST_UNREGISTER = find("cuMemHostUnregister", ADDRESS);
    private static final MethodHandle CU_MEM_HOST_GET_DEVICE_POINTER_V2 = find("cuMemHostGetDevicePointer_v2",
        ADDRESS, ADDRESS, JAVA_INT);
    private static final MethodHandle CU_EVENT_CREATE = find("cuEventCreate", ADDRESS, JAVA_INT);
    private static final MethodHandle CU_EVENT_RECORD = find("cuEventRecord", JAVA_LONG, JAVA_LONG);
    private static final MethodHandle CU_EVENT_QUERY = find("cuEventQuery", JAVA_LONG);
    private static final MethodHandle CU_EVENT_SYNCHRONIZE = find("cuEventSynchronize", JAVA_LONG);
    private static final MethodHandle CU_EVENT_DESTROY_V2 = find("cuEventDestroy_v2", JAVA_LONG);
    private static final MethodHandle CU_STREAM_CREATE = find("cuStreamCreate", ADDRESS, JAVA_INT);
    private static final MethodHandle CU_STREAM_QUERY = find("cuStreamQuery", JAVA_LONG);
    private static final MethodHandle CU_STREAM_SYNCHRONIZE = find("cuStreamSynchronize", JAVA_LONG);
    private static final MethodHandle CU_STREAM_WAIT_EVENT = find("cuStreamWaitEvent", JAVA_LONG, JAVA_LONG, JAVA_INT);
    private static final MethodHandle CU_MEMCPY_3DASYNC_V2 = find("cuMemcpy3DAsync_v2", ADDRESS, JAVA_LONG);
    private static final MethodHandle CU_TEX_OBJECT_CREATE = find("cuTexObjectCreate", ADDRESS, ADDRESS, ADDRESS,
        ADDRESS);
    private static final MethodHandle CU_SURF_OBJECT_CREATE = find("cuSurfObjectCreate", ADDRESS, ADDRESS);
    private static final MethodHandle CU_GET_ERROR_NAME = find("cuGetErrorName", JAVA_INT, ADDRESS);

    private Driver() {
    }

    private static MethodHandle find(String symbol, MemoryLayout... parameters) {
        return LIBRARY.find(symbol, CUresult.CUDA_ERROR_NOT_SUPPORTED, parameters);
    }

    static int cuInit(int flags) {
        try {
            return (int) CU_INIT.invokeExact(flags);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuDriverGetVersion(MemorySegment version) {
        try {
            return (int) CU_DRIVER_GET_VERSION.invokeExact(version);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuDeviceGetCount(MemorySegment count) {
        try {
            return (int) CU_DEVICE_GET_COUNT.invokeExact(count);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuDeviceGet(MemorySegment device, int ordinal) {
        try {
            return (int) CU_DEVICE_GET.invokeExact(device, ordinal);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuDeviceGetName(MemorySegment name, int capacity, int device) {
        try {
            return (int) CU_DEVICE_GET_NAME.invokeExact(name, capacity, device);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuDeviceGetUuid_v2(MemorySegment uuid, int device) {
        try {
            return (int) CU_DEVICE_GET_UUID_V2.invokeExact(uuid, device);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuDeviceTotalMem_v2(MemorySegment bytes, int device) {
        try {
            return (int) CU_DEVICE_TOTAL_MEM_V2.invokeExact(bytes, device);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuDeviceGetAttribute(MemorySegment value, int attribute, int device) {
        try {
            return (int) CU_DEVICE_GET_ATTRIBUTE.invokeExact(value, attribute, device);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuDeviceCanAccessPeer(MemorySegment can, int device, int peer) {
        try {
            return (int) CU_DEVICE_CAN_ACCESS_PEER.invokeExact(can, device, peer);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuDeviceGetP2PAttribute(MemorySegment value, int attribute, int device, int peer) {
        try {
            return (int) CU_DEVICE_GET_P2P_ATTRIBUTE.invokeExact(value, attribute, device, peer);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuDevicePrimaryCtxRetain(MemorySegment context, int device) {
        try {
            return (int) CU_DEVICE_PRIMARY_CTX_RETAIN.invokeExact(context, device);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuDevicePrimaryCtxReset_v2(int device) {
        try {
            return (int) CU_DEVICE_PRIMARY_CTX_RESET_V2.invokeExact(device);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuDevicePrimaryCtxSetFlags_v2(int device, int flags) {
        try {
            return (int) CU_DEVICE_PRIMARY_CTX_SET_FLAGS_V2.invokeExact(device, flags);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuCtxCreate_v2(MemorySegment context, int flags, int device) {
        try {
            return (int) CU_CTX_CREATE_V2.invokeExact(context, flags, device);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuCtxDestroy_v2(long context) {
        try {
            return (int) CU_CTX_DESTROY_V2.invokeExact(context);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuCtxSetCurrent(long context) {
        try {
            return (int) CU_CTX_SET_CURRENT.invokeExact(context);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuCtxRecordEvent(long context, long event) {
        try {
            return (int) CU_CTX_RECORD_EVENT.invokeExact(context, event);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuModuleLoadDataEx(MemorySegment module, MemorySegment image, int count, MemorySegment options,
            MemorySegment values) {
        try {
            return (int) CU_MODULE_LOAD_DATA_EX.invokeExact(module, image, count, options, values);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuModuleUnload(long module) {
        try {
            return (int) CU_MODULE_UNLOAD.invokeExact(module);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuModuleGetFunction(MemorySegment function, long module, MemorySegment name) {
        try {
            return (int) CU_MODULE_GET_FUNCTION.invokeExact(function, module, name);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuModuleGetFunctionCount(MemorySegment count, long module) {
        try {
            return (int) CU_MODULE_GET_FUNCTION_COUNT.invokeExact(count, module);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuModuleEnumerateFunctions(MemorySegment functions, int count, long module) {
        try {
            return (int) CU_MODULE_ENUMERATE_FUNCTIONS.invokeExact(functions, count, module);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuModuleGetGlobal_v2(MemorySegment address, MemorySegment bytes, long module, MemorySegment name) {
        try {
            return (int) CU_MODULE_GET_GLOBAL_V2.invokeExact(address, bytes, module, name);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuFuncGetName(MemorySegment name, long function) {
        try {
            return (int) CU_FUNC_GET_NAME.invokeExact(name, function);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuFuncGetAttribute(MemorySegment value, int attribute, long function) {
        try {
            return (int) CU_FUNC_GET_ATTRIBUTE.invokeExact(value, attribute, function);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuFuncGetParamInfo(long function, long index, MemorySegment offset, MemorySegment bytes) {
        try {
            return (int) CU_FUNC_GET_PARAM_INFO.invokeExact(function, index, offset, bytes);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuLaunchKernelEx(MemorySegment config, long function, MemorySegment params, MemorySegment extra) {
        try {
            return (int) CU_LAUNCH_KERNEL_EX.invokeExact(config, function, params, extra);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuLaunchHostFunc(long stream, MemorySegment function, long data) {
        try {
            return (int) CU_LAUNCH_HOST_FUNC.invokeExact(stream, function, data);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuMemcpyHtoDAsync_v2(long destination, MemorySegment source, long bytes, long stream) {
        try {
            return (int) CU_MEMCPY_HTO_DASYNC_V2.invokeExact(destination, source, bytes, stream);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuMemcpyDtoHAsync_v2(MemorySegment destination, long source, long bytes, long stream) {
        try {
            return (int) CU_MEMCPY_DTO_HASYNC_V2.invokeExact(destination, source, bytes, stream);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuMemcpy3DAsync_v2(MemorySegment copy, long stream) {
        try {
            return (int) CU_MEMCPY_3DASYNC_V2.invokeExact(copy, stream);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuTexObjectCreate(MemorySegment object, MemorySegment resource, MemorySegment texture,
            MemorySegment view) {
        try {
            return (int) CU_TEX_OBJECT_CREATE.invokeExact(object, resource, texture, view);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuSurfObjectCreate(MemorySegment object, MemorySegment resource) {
        try {
            return (int) CU_SURF_OBJECT_CREATE.invokeExact(object, resource);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuMemHostAlloc(MemorySegment pointer, long bytes, int flags) {
        try {
            return (int) CU_MEM_HOST_ALLOC.invokeExact(pointer, bytes, flags);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuMemFreeHost(MemorySegment pointer) {
        try {
            return (int) CU_MEM_FREE_HOST.invokeExact(pointer);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuMemHostRegister_v2(MemorySegment pointer, long bytes, int flags) {
        try {
            return (int) CU_MEM_HOST_REGISTER_V2.invokeExact(pointer, bytes, flags);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuMemHostUnregister(MemorySegment pointer) {
        try {
            return (int) CU_MEM_HOST_UNREGISTER.invokeExact(pointer);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuMemHostGetDevicePointer_v2(MemorySegment address, MemorySegment pointer, int flags) {
        try {
            return (int) CU_MEM_HOST_GET_DEVICE_POINTER_V2.invokeExact(address, pointer, flags);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuEventCreate(MemorySegment event, int flags) {
        try {
            return (int) CU_EVENT_CREATE.invokeExact(event, flags);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuEventRecord(long event, long stream) {
        try {
            return (int) CU_EVENT_RECORD.invokeExact(event, stream);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuEventQuery(long event) {
        try {
            return (int) CU_EVENT_QUERY.invokeExact(event);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuEventSynchronize(long event) {
        try {
            return (int) CU_EVENT_SYNCHRONIZE.invokeExact(event);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuEventDestroy_v2(long event) {
        try {
            return (int) CU_EVENT_DESTROY_V2.invokeExact(event);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuStreamQuery(long stream) {
        try {
            return (int) CU_STREAM_QUERY.invokeExact(stream);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuStreamSynchronize(long stream) {
        try {
            return (int) CU_STREAM_SYNCHRONIZE.invokeExact(stream);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuStreamCreate(MemorySegment stream, int flags) {
        try {
            return (int) CU_STREAM_CREATE.invokeExact(stream, flags);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuStreamWaitEvent(long stream, long event, int flags) {
        try {
            return (int) CU_STREAM_WAIT_EVENT.invokeExact(stream, event, flags);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGetErrorName(int result, MemorySegment name) {
        try {
            return (int) CU_GET_ERROR_NAME.invokeExact(result, name);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuCtxPushCurrent_v2(long context) {
        try {
            return (int) CU_CTX_PUSH_CURRENT_V2.invokeExact(context);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuCtxPopCurrent_v2(MemorySegment context) {
        try {
            return (int) CU_CTX_POP_CURRENT_V2.invokeExact(context);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuLibraryLoadData(MemorySegment library, MemorySegment code, MemorySegment jitOptions,
            MemorySegment jitValues, int jitCount, MemorySegment options, MemorySegment optionValues,
            int optionCount) {
        try {
            return (int) CU_LIBRARY_LOAD_DATA.invokeExact(library, code, jitOptions, jitValues, jitCount, options,
                optionValues, optionCount);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuLibraryGetModule(MemorySegment module, long library) {
        try {
            return (int) CU_LIBRARY_GET_MODULE.invokeExact(module, library);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuLibraryUnload(long library) {
        try {
            return (int) CU_LIBRARY_UNLOAD.invokeExact(library);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }
}
