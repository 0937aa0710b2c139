/* The driver's results for unknown attributes and empty images, and the bytes that it writes for known attributes. */
#include "check_driver.h"

#include <fcntl.h>

#ifndef HAWSER_NVIDIA_HEADER
typedef struct CUlinkState_st *CUlinkState;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef int CUjitInputType, CUmemPool_attribute;
#define CUDA_ERROR_FILE_NOT_FOUND ((CUresult) 301)
#define CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ((CUpointer_attribute) 6)
#define CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED ((CUdevice_attribute) 115)
#define cuLinkCreate cuLinkCreate_v2
#define cuLinkAddData cuLinkAddData_v2
#define cuLinkAddFile cuLinkAddFile_v2
CUresult cuLinkCreate(unsigned int numOptions, CUjit_option *options, void **optionValues, CUlinkState *stateOut);
CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                       unsigned int numOptions, CUjit_option *options, void **optionValues);
CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions,
                       CUjit_option *options, void **optionValues);
CUresult cuLinkDestroy(CUlinkState state);
CUresult cuModuleLoad(CUmodule *module, const char *fname);
CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr ptr);
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value);
#endif

/* An attribute of four bytes: the driver writes an int and nothing after it. */
static int flag_of(CUpointer_attribute attribute, CUdeviceptr pointer) {
    int value[2] = {-1, -1}, listed[2] = {-1, -1};
    void *data[1] = {listed};
    CU_OK(cuPointerGetAttribute(value, attribute, pointer));
    CU_OK(cuPointerGetAttributes(1, &attribute, data, pointer));
    check_equal("the same in a list", value[0], listed[0]);
    check_true("nothing behind", value[1] == -1 && listed[1] == -1);
    return value[0];
}

static void pointers(void) {
    void *pinned;
    CUdeviceptr device = check_device(NULL, 4096), host;
    CU_OK(cuMemAllocHost_v2(&pinned, 4096));
    host = (CUdeviceptr) (uintptr_t) pinned;
    check_equal("device memory does not synchronise copies", 0, flag_of(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device));
    check_equal("nor does host memory", 0, flag_of(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, host));
    check_equal("not managed", 0, flag_of(CU_POINTER_ATTRIBUTE_IS_MANAGED, device));
    check_equal("mapped", 1, flag_of(CU_POINTER_ATTRIBUTE_MAPPED, device + 9));
    for (int wanted = 0; wanted <= 512; wanted += 256) {
        CU_OK(cuPointerSetAttribute(&wanted, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device));
        check_equal("set and read back", wanted != 0, flag_of(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device));
    }
    int value = 1;
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_IS_MANAGED, device));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 64));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&value, (CUpointer_attribute) 99, device));
    CU_OK(cuMemFreeHost(pinned));
    CU_OK(cuMemFree(device));
}

static void pools(void) {
    CUmemoryPool pool;
    int supported = 0;
    CU_OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0));
    check_here("memory pools: %d", supported);
    if (!supported) {
        return;
    }
    const int unknown[] = {-1, 0, 99};
    CU_OK(cuDeviceGetDefaultMemPool(&pool, 0));
    for (int i = 0; i < 3; i++) {
        uint64_t value = 0;
        CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAttribute(pool, (CUmemPool_attribute) unknown[i], &value));
        CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(pool, (CUmemPool_attribute) unknown[i], &value));
    }
}

static void images(void) {
    char path[] = "/tmp/hawser-answers-XXXXXX", empty[] = "";
    int fd = mkstemp(path);
    CUmodule module;
    check_true("a file", fd >= 0 && close(fd) == 0);
    for (int type = 0; type <= 5; type++) { /* cubin, PTX, fatbinary, object, library, NVVM */
        CUlinkState link;
        CU_OK(cuLinkCreate(0, NULL, NULL, &link));
        CU_IS(CUDA_ERROR_INVALID_IMAGE, cuLinkAddFile(link, (CUjitInputType) type, path, 0, NULL, NULL));
        CU_IS(CUDA_ERROR_INVALID_VALUE, cuLinkAddData(link, (CUjitInputType) type, empty, 0, "empty", 0, NULL, NULL));
        if (type <= 2) {
            CU_IS(CUDA_ERROR_INVALID_IMAGE,
                  cuLinkAddData(link, (CUjitInputType) type, empty, 1, "empty", 0, NULL, NULL));
        }
        CU_OK(cuLinkDestroy(link));
    }
    CU_IS(CUDA_ERROR_INVALID_IMAGE, cuModuleLoad(&module, path));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuModuleLoad(&module, ""));
    CU_IS(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, "/nonexistent"));
    check_true("gone", unlink(path) == 0);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    pointers();
    pools();
    images();
    int value = 0;
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, (CUdevice_attribute) 9999, 0));
    return check_pass("attributes of pointers and pools, empty images");
}
