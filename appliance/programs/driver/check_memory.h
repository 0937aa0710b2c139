/* The kinds of device memory allocation behind one interface, for programs that fill memory; declared as in
 * check_driver.h. */
#ifndef HAWSER_PROGRAMS_CHECK_MEMORY_H
#define HAWSER_PROGRAMS_CHECK_MEMORY_H

#include "check_arrays.h"
#include "check_graphs.h"
#include "check_vmm.h"

#ifndef HAWSER_NVIDIA_HEADER
typedef struct CUmemPoolProps_st {
    int allocType, handleTypes;
    CUmemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
} CUmemPoolProps;

typedef struct CUDA_MEM_ALLOC_NODE_PARAMS_st {
    CUmemPoolProps poolProps;
    const void *accessDescs;
    size_t accessDescCount, bytesize;
    CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;

#define CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED ((CUdevice_attribute) 102)
#define CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED ((CUdevice_attribute) 115)
CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream);
CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream);
CUresult cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams);
CUresult cuDeviceGraphMemTrim(CUdevice device);
#endif

#define CHECK_MEMORY_PAGE ((size_t) 2 << 20) /* no kind rounds up a multiple of this */

typedef enum {
    FILL_PLAIN,
    FILL_PITCHED,
    FILL_ARRAY,
    FILL_MODULE,
    FILL_CREATED,
    FILL_POOL,
    FILL_GRAPH,
    FILL_WAYS
} fill_way_t;

static const char *const fill_names[FILL_WAYS] = {"plain", "pitched", "array", "module", "created", "pool", "graph"};

/* One allocation of any kind. */
typedef struct {
    fill_way_t way;
    CUdeviceptr address;
    CUarray array;
    CUmodule module;
    CUmemGenericAllocationHandle created;
    CUgraph graph;
    CUgraphExec exec;
} fill_t;

static int fill_attribute(CUdevice_attribute attribute) {
    int value = 0;
    CU_OK(cuDeviceGetAttribute(&value, attribute, 0));
    return value;
}

/* Whether device 0 has this kind of allocation. */
static inline int fill_supported(fill_way_t way) {
    return way == FILL_CREATED ? fill_attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)
        : way == FILL_POOL || way == FILL_GRAPH ? fill_attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)
                                                : 1;
}

/* The maximum size of one allocation of a kind. */
static inline size_t fill_most(fill_way_t way) {
    return way == FILL_ARRAY ? (size_t) 16 << 30 : way == FILL_MODULE ? (size_t) 1 << 30 : SIZE_MAX;
}

static inline CUresult fill_array_(fill_t *fill, size_t bytes) {
    /* 1 MiB in each row, with numbers of rows that a driver need not round up. */
    CUDA_ARRAY3D_DESCRIPTOR shape = {
        .Width = 65536, .Height = bytes >> 20, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    return cuArray3DCreate(&fill->array, &shape);
}

static inline CUresult fill_module_(fill_t *fill, size_t bytes) {
    char text[400];
    snprintf(text, sizeof(text),
             ".version 7.0\n.target sm_75\n.address_size 64\n.visible .global .align 16 .b8 big[%zu];\n"
             ".visible .entry nothing()\n{\n ret;\n}\n",
             bytes);
    CUresult result = cuModuleLoadData(&fill->module, text);
    size_t size;
    return result != CUDA_SUCCESS ? result : cuModuleGetGlobal(&fill->address, &size, fill->module, "big");
}

static inline CUresult fill_graph_(fill_t *fill, size_t bytes, CUstream stream) {
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.bytesize = bytes};
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUgraphNode node;
    CUresult result = cuGraphCreate(&fill->graph, 0);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = cuGraphAddMemAllocNode(&node, fill->graph, NULL, 0, &params);
    if (result == CUDA_SUCCESS) {
        result = cuGraphInstantiate(&fill->exec, fill->graph, 0);
    }
    if (result == CUDA_SUCCESS) {
        result = cuGraphLaunch(fill->exec, stream);
        fill->address = params.dptr;
    }
    if (result == CUDA_SUCCESS) {
        result = cuStreamSynchronize(stream);
    }
    if (result == CUDA_SUCCESS) {
        return result;
    }
    /* If the device has been lost meanwhile, returns that error. */
    CUresult undone = fill->exec != NULL ? cuGraphExecDestroy(fill->exec) : CUDA_SUCCESS;
    undone = undone != CUDA_SUCCESS ? undone : cuGraphDestroy(fill->graph);
    return undone != CUDA_SUCCESS ? undone : result;
}

/* Allocates memory: a power of two from CHECK_MEMORY_PAGE. Returns CUDA's result; on failure nothing stays
 * allocated. */
static inline CUresult fill_take(fill_t *fill, fill_way_t way, size_t bytes, CUstream stream) {
    const CUmemAllocationProp created = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    size_t pitch;
    memset(fill, 0, sizeof(*fill));
    fill->way = way;
    switch (way) {
        case FILL_PLAIN:
            return cuMemAlloc(&fill->address, bytes);
        case FILL_PITCHED:
            return cuMemAllocPitch(&fill->address, &pitch, 4096, bytes / 4096, 16);
        case FILL_ARRAY:
            return fill_array_(fill, bytes);
        case FILL_MODULE:
            return fill_module_(fill, bytes);
        case FILL_CREATED:
            return cuMemCreate(&fill->created, bytes, &created, 0);
        case FILL_POOL:
            return cuMemAllocAsync(&fill->address, bytes, stream);
        default:
            return fill_graph_(fill, bytes, stream);
    }
}

/* Frees an allocation after the work that uses it has ended. */
static inline CUresult fill_give(fill_t *fill, CUstream stream) {
    CUresult result;
    switch (fill->way) {
        case FILL_PLAIN:
        case FILL_PITCHED:
            return cuMemFree(fill->address);
        case FILL_ARRAY:
            return cuArrayDestroy(fill->array);
        case FILL_MODULE:
            return cuModuleUnload(fill->module);
        case FILL_CREATED:
            return cuMemRelease(fill->created);
        case FILL_POOL:
            return cuMemFreeAsync(fill->address, stream);
        default:
            result = cuMemFreeAsync(fill->address, stream);
            result = result != CUDA_SUCCESS ? result : cuStreamSynchronize(stream);
            result = result != CUDA_SUCCESS ? result : cuGraphExecDestroy(fill->exec);
            result = result != CUDA_SUCCESS ? result : cuGraphDestroy(fill->graph);
            return result != CUDA_SUCCESS ? result : cuDeviceGraphMemTrim(0);
    }
}

#endif
