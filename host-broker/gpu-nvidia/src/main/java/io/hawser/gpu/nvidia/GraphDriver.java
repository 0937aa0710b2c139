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
 * Functions of the Driver API for graphs, with CUDA's names and C's parameters. A function that the installed driver
 * lacks returns CUDA_ERROR_NOT_SUPPORTED. Session thread only.
 */
final class GraphDriver {
    private static final NativeLibrary LIBRARY = NativeLibrary.open(NvidiaProvider.LIBRARY);

    private static final MethodHandle CU_GRAPH_CREATE = find("cuGraphCreate", ADDRESS, JAVA_INT);
    private static final MethodHandle CU_GRAPH_DESTROY = find("cuGraphDestroy", JAVA_LONG);
    private static final MethodHandle CU_GRAPH_ADD_KERNEL_NODE_V2 = find("cuGraphAddKernelNode_v2", ADDRESS, JAVA_LONG,
        ADDRESS, JAVA_LONG, ADDRESS);
    private static final MethodHandle CU_GRAPH_ADD_MEMCPY_NODE = find("cuGraphAddMemcpyNode", ADDRESS, JAVA_LONG,
        ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG);
    private static final MethodHandle CU_GRAPH_ADD_MEMSET_NODE = find("cuGraphAddMemsetNode", ADDRESS, JAVA_LONG,
        ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG);
    private static final MethodHandle CU_GRAPH_ADD_HOST_NODE = find("cuGraphAddHostNode", ADDRESS, JAVA_LONG, ADDRESS,
        JAVA_LONG, ADDRESS);
    private static final MethodHandle CU_GRAPH_ADD_EMPTY_NODE = find("cuGraphAddEmptyNode", ADDRESS, JAVA_LONG, ADDRESS,
        JAVA_LONG);
    private static final MethodHandle CU_GRAPH_ADD_EVENT_RECORD_NODE = find("cuGraphAddEventRecordNode", ADDRESS,
        JAVA_LONG, ADDRESS, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle CU_GRAPH_ADD_EVENT_WAIT_NODE = find("cuGraphAddEventWaitNode", ADDRESS, JAVA_LONG,
        ADDRESS, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle CU_GRAPH_ADD_MEM_ALLOC_NODE = find("cuGraphAddMemAllocNode", ADDRESS, JAVA_LONG,
        ADDRESS, JAVA_LONG, ADDRESS);
    private static final MethodHandle CU_GRAPH_ADD_MEM_FREE_NODE = find("cuGraphAddMemFreeNode", ADDRESS, JAVA_LONG,
        ADDRESS, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle CU_GRAPH_ADD_NODE_V2 = find("cuGraphAddNode_v2", ADDRESS, JAVA_LONG, ADDRESS,
        ADDRESS, JAVA_LONG, ADDRESS);
    private static final MethodHandle CU_GRAPH_KERNEL_NODE_SET_PARAMS_V2 = find("cuGraphKernelNodeSetParams_v2",
        JAVA_LONG, ADDRESS);
    private static final MethodHandle CU_GRAPH_KERNEL_NODE_SET_ATTRIBUTE = find("cuGraphKernelNodeSetAttribute",
        JAVA_LONG, JAVA_INT, ADDRESS);
    private static final MethodHandle CU_GRAPH_MEMCPY_NODE_SET_PARAMS = find("cuGraphMemcpyNodeSetParams", JAVA_LONG,
        ADDRESS);
    private static final MethodHandle CU_GRAPH_MEMSET_NODE_SET_PARAMS = find("cuGraphMemsetNodeSetParams", JAVA_LONG,
        ADDRESS);
    private static final MethodHandle CU_GRAPH_HOST_NODE_SET_PARAMS = find("cuGraphHostNodeSetParams", JAVA_LONG,
        ADDRESS);
    private static final MethodHandle CU_GRAPH_EVENT_RECORD_NODE_SET_EVENT = find("cuGraphEventRecordNodeSetEvent",
        JAVA_LONG, JAVA_LONG);
    private static final MethodHandle CU_GRAPH_EVENT_WAIT_NODE_SET_EVENT = find("cuGraphEventWaitNodeSetEvent",
        JAVA_LONG, JAVA_LONG);
    private static final MethodHandle CU_GRAPH_ADD_DEPENDENCIES_V2 = find("cuGraphAddDependencies_v2", JAVA_LONG,
        ADDRESS, ADDRESS, ADDRESS, JAVA_LONG);
    private static final MethodHandle CU_GRAPH_REMOVE_DEPENDENCIES_V2 = find("cuGraphRemoveDependencies_v2", JAVA_LONG,
        ADDRESS, ADDRESS, ADDRESS, JAVA_LONG);
    private static final MethodHandle CU_GRAPH_DESTROY_NODE = find("cuGraphDestroyNode", JAVA_LONG);
    private static final MethodHandle CU_GRAPH_INSTANTIATE_WITH_PARAMS = find("cuGraphInstantiateWithParams", ADDRESS,
        JAVA_LONG, ADDRESS);
    private static final MethodHandle CU_GRAPH_EXEC_DESTROY = find("cuGraphExecDestroy", JAVA_LONG);
    private static final MethodHandle CU_GRAPH_EXEC_KERNEL_NODE_SET_PARAMS_V2 = find(
        "cuGraphExecKernelNodeSetParams_v2", JAVA_LONG, JAVA_LONG, ADDRESS);
    private static final MethodHandle CU_GRAPH_EXEC_MEMCPY_NODE_SET_PARAMS = find("cuGraphExecMemcpyNodeSetParams",
        JAVA_LONG, JAVA_LONG, ADDRESS, JAVA_LONG);
    private static final MethodHandle CU_GRAPH_EXEC_MEMSET_NODE_SET_PARAMS = find("cuGraphExecMemsetNodeSetParams",
        JAVA_LONG, JAVA_LONG, ADDRESS, JAVA_LONG);
    private static final MethodHandle CU_GRAPH_EXEC_HOST_NODE_SET_PARAMS = find("cuGraphExecHostNodeSetParams",
        JAVA_LONG, JAVA_LONG, ADDRESS);
    private static final MethodHandle CU_GRAPH_EXEC_CHILD_GRAPH_NODE_SET_PARAMS = find(
        "cuGraphExecChildGraphNodeSetParams", JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle CU_GRAPH_EXEC_EVENT_RECORD_NODE_SET_EVENT = find(
        "cuGraphExecEventRecordNodeSetEvent", JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle CU_GRAPH_EXEC_EVENT_WAIT_NODE_SET_EVENT = find("cuGraphExecEventWaitNodeSetEvent",
        JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle CU_GRAPH_EXEC_UPDATE_V2 = find("cuGraphExecUpdate_v2", JAVA_LONG, JAVA_LONG,
        ADDRESS);
    private static final MethodHandle CU_GRAPH_NODE_SET_ENABLED = find("cuGraphNodeSetEnabled", JAVA_LONG, JAVA_LONG,
        JAVA_INT);
    private static final MethodHandle CU_GRAPH_LAUNCH = find("cuGraphLaunch", JAVA_LONG, JAVA_LONG);
    private static final MethodHandle CU_GRAPH_UPLOAD = find("cuGraphUpload", JAVA_LONG, JAVA_LONG);
    private static final MethodHandle CU_DEVICE_GRAPH_MEM_TRIM = find("cuDeviceGraphMemTrim", JAVA_INT);
    private static final MethodHandle CU_DEVICE_GET_GRAPH_MEM_ATTRIBUTE = find("cuDeviceGetGraphMemAttribute", JAVA_INT,
        JAVA_INT, ADDRESS);
    private static final MethodHandle CU_DEVICE_SET_GRAPH_MEM_ATTRIBUTE = find("cuDeviceSetGraphMemAttribute", JAVA_INT,
        JAVA_INT, ADDRESS);

    private GraphDriver() {
    }

    private static MethodHandle find(String symbol, MemoryLayout... parameters) {
        return LIBRARY.find(symbol, CUresult.CUDA_ERROR_NOT_SUPPORTED, parameters);
    }

    static int cuGraphCreate(MemorySegment graph, int flags) {
        try {
            return (int) CU_GRAPH_CREATE.invokeExact(graph, flags);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphDestroy(long graph) {
        try {
            return (int) CU_GRAPH_DESTROY.invokeExact(graph);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphAddKernelNode_v2(MemorySegment node, long graph, MemorySegment dependencies, long count,
            MemorySegment params) {
        try {
            return (int) CU_GRAPH_ADD_KERNEL_NODE_V2.invokeExact(node, graph, dependencies, count, params);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphAddMemcpyNode(MemorySegment node, long graph, MemorySegment dependencies, long count,
            MemorySegment params, long context) {
        try {
            return (int) CU_GRAPH_ADD_MEMCPY_NODE.invokeExact(node, graph, dependencies, count, params, context);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphAddMemsetNode(MemorySegment node, long graph, MemorySegment dependencies, long count,
            MemorySegment params, long context) {
        try {
            return (int) CU_GRAPH_ADD_MEMSET_NODE.invokeExact(node, graph, dependencies, count, params, context);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphAddHostNode(MemorySegment node, long graph, MemorySegment dependencies, long count,
            MemorySegment params) {
        try {
            return (int) CU_GRAPH_ADD_HOST_NODE.invokeExact(node, graph, dependencies, count, params);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphAddEmptyNode(MemorySegment node, long graph, MemorySegment dependencies, long count) {
        try {
            return (int) CU_GRAPH_ADD_EMPTY_NODE.invokeExact(node, graph, dependencies, count);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphAddEventRecordNode(MemorySegment node, long graph, MemorySegment dependencies, long count,
            long event) {
        try {
            return (int) CU_GRAPH_ADD_EVENT_RECORD_NODE.invokeExact(node, graph, dependencies, count, event);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphAddEventWaitNode(MemorySegment node, long graph, MemorySegment dependencies, long count,
            long event) {
        try {
            return (int) CU_GRAPH_ADD_EVENT_WAIT_NODE.invokeExact(node, graph, dependencies, count, event);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphAddMemAllocNode(MemorySegment node, long graph, MemorySegment dependencies, long count,
            MemorySegment params) {
        try {
            return (int) CU_GRAPH_ADD_MEM_ALLOC_NODE.invokeExact(node, graph, dependencies, count, params);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphAddMemFreeNode(MemorySegment node, long graph, MemorySegment dependencies, long count,
            long address) {
        try {
            return (int) CU_GRAPH_ADD_MEM_FREE_NODE.invokeExact(node, graph, dependencies, count, address);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphAddNode_v2(MemorySegment node, long graph, MemorySegment dependencies, MemorySegment edgeData,
            long count, MemorySegment params) {
        try {
            return (int) CU_GRAPH_ADD_NODE_V2.invokeExact(node, graph, dependencies, edgeData, count, params);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphKernelNodeSetParams_v2(long node, MemorySegment params) {
        try {
            return (int) CU_GRAPH_KERNEL_NODE_SET_PARAMS_V2.invokeExact(node, params);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphKernelNodeSetAttribute(long node, int attribute, MemorySegment value) {
        try {
            return (int) CU_GRAPH_KERNEL_NODE_SET_ATTRIBUTE.invokeExact(node, attribute, value);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphMemcpyNodeSetParams(long node, MemorySegment params) {
        try {
            return (int) CU_GRAPH_MEMCPY_NODE_SET_PARAMS.invokeExact(node, params);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphMemsetNodeSetParams(long node, MemorySegment params) {
        try {
            return (int) CU_GRAPH_MEMSET_NODE_SET_PARAMS.invokeExact(node, params);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphHostNodeSetParams(long node, MemorySegment params) {
        try {
            return (int) CU_GRAPH_HOST_NODE_SET_PARAMS.invokeExact(node, params);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphEventRecordNodeSetEvent(long node, long event) {
        try {
            return (int) CU_GRAPH_EVENT_RECORD_NODE_SET_EVENT.invokeExact(node, event);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphEventWaitNodeSetEvent(long node, long event) {
        try {
            return (int) CU_GRAPH_EVENT_WAIT_NODE_SET_EVENT.invokeExact(node, event);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphAddDependencies_v2(long graph, MemorySegment from, MemorySegment to, MemorySegment edgeData,
            long count) {
        try {
            return (int) CU_GRAPH_ADD_DEPENDENCIES_V2.invokeExact(graph, from, to, edgeData, count);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphRemoveDependencies_v2(long graph, MemorySegment from, MemorySegment to, MemorySegment edgeData,
            long count) {
        try {
            return (int) CU_GRAPH_REMOVE_DEPENDENCIES_V2.invokeExact(graph, from, to, edgeData, count);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphDestroyNode(long node) {
        try {
            return (int) CU_GRAPH_DESTROY_NODE.invokeExact(node);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphInstantiateWithParams(MemorySegment exec, long graph, MemorySegment params) {
        try {
            return (int) CU_GRAPH_INSTANTIATE_WITH_PARAMS.invokeExact(exec, graph, params);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphExecDestroy(long exec) {
        try {
            return (int) CU_GRAPH_EXEC_DESTROY.invokeExact(exec);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphExecKernelNodeSetParams_v2(long exec, long node, MemorySegment params) {
        try {
            return (int) CU_GRAPH_EXEC_KERNEL_NODE_SET_PARAMS_V2.invokeExact(exec, node, params);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphExecMemcpyNodeSetParams(long exec, long node, MemorySegment params, long context) {
        try {
            return (int) CU_GRAPH_EXEC_MEMCPY_NODE_SET_PARAMS.invokeExact(exec, node, params, context);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphExecMemsetNodeSetParams(long exec, long node, MemorySegment params, long context) {
        try {
            return (int) CU_GRAPH_EXEC_MEMSET_NODE_SET_PARAMS.invokeExact(exec, node, params, context);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphExecHostNodeSetParams(long exec, long node, MemorySegment params) {
        try {
            return (int) CU_GRAPH_EXEC_HOST_NODE_SET_PARAMS.invokeExact(exec, node, params);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphExecChildGraphNodeSetParams(long exec, long node, long child) {
        try {
            return (int) CU_GRAPH_EXEC_CHILD_GRAPH_NODE_SET_PARAMS.invokeExact(exec, node, child);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphExecEventRecordNodeSetEvent(long exec, long node, long event) {
        try {
            return (int) CU_GRAPH_EXEC_EVENT_RECORD_NODE_SET_EVENT.invokeExact(exec, node, event);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphExecEventWaitNodeSetEvent(long exec, long node, long event) {
        try {
            return (int) CU_GRAPH_EXEC_EVENT_WAIT_NODE_SET_EVENT.invokeExact(exec, node, event);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphExecUpdate_v2(long exec, long graph, MemorySegment info) {
        try {
            return (int) CU_GRAPH_EXEC_UPDATE_V2.invokeExact(exec, graph, info);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphNodeSetEnabled(long exec, long node, int isEnabled) {
        try {
            return (int) CU_GRAPH_NODE_SET_ENABLED.invokeExact(exec, node, isEnabled);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphLaunch(long exec, long stream) {
        try {
            return (int) CU_GRAPH_LAUNCH.invokeExact(exec, stream);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuGraphUpload(long exec, long stream) {
        try {
            return (int) CU_GRAPH_UPLOAD.invokeExact(exec, stream);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuDeviceGraphMemTrim(int device) {
        try {
            return (int) CU_DEVICE_GRAPH_MEM_TRIM.invokeExact(device);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuDeviceGetGraphMemAttribute(int device, int attribute, MemorySegment value) {
        try {
            return (int) CU_DEVICE_GET_GRAPH_MEM_ATTRIBUTE.invokeExact(device, attribute, value);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuDeviceSetGraphMemAttribute(int device, int attribute, MemorySegment value) {
        try {
            return (int) CU_DEVICE_SET_GRAPH_MEM_ATTRIBUTE.invokeExact(device, attribute, value);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }
}
