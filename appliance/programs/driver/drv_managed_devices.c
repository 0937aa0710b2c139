/*
 * Managed memory and managed variables that several devices use, without peer access. With one device, two of its
 * contexts take the place of two devices.
 */
#include "check_driver.h"

#define MAX_DEVICES 4
#define COUNT 5000
#define TURNS 3

#ifndef HAWSER_NVIDIA_HEADER
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
                               void **jitOptionsValues, unsigned int numJitOptions, void *libraryOptions,
                               void **libraryOptionValues, unsigned int numLibraryOptions);
CUresult cuLibraryUnload(CUlibrary library);
CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name);
CUresult cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name);
#endif

static CUcontext contexts[MAX_DEVICES];
static int count;

static void open_contexts(void) {
    int devices;
    CU_OK(cuDeviceGetCount(&devices));
    check_true("a device", devices > 0);
    check_equal("devices", check_option("--devices", devices), devices); /* for a caller that knows the number */
    count = devices == 1 ? 2 : devices < MAX_DEVICES ? devices : MAX_DEVICES;
    for (int i = 0; i < count; i++) {
        CUdevice device;
        int concurrent = 0;
        CU_OK(cuDeviceGet(&device, devices == 1 ? 0 : i));
        CU_OK(cuDeviceGetAttribute(&concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device));
        if (!concurrent) {
            check_unsupported("device %d has no concurrent access to managed memory (attribute 89)", i);
        }
        if (devices == 1 && i == 1) {
            CU_OK(cuCtxCreate_v2(&contexts[i], 0, device));
        } else {
            CU_OK(cuDevicePrimaryCtxRetain(&contexts[i], device));
        }
    }
}

/* Each device in turn adds to a block that each device in turn has allocated. */
static void check_blocks(CUlibrary kernels) {
    CUkernel add;
    CU_OK(cuLibraryGetKernel(&add, kernels, "add_value"));
    for (int owner = 0; owner < count; owner++) {
        CUdeviceptr block;
        CU_OK(cuCtxSetCurrent(contexts[owner]));
        CU_OK(cuMemAllocManaged(&block, COUNT * sizeof(int), CU_MEM_ATTACH_GLOBAL));
        volatile int *values = (volatile int *) block;
        int expected = 0, n = COUNT;
        for (int turn = 0; turn < TURNS * count; turn++) {
            int value = 10 * turn + owner;
            for (int i = turn; i < COUNT; i += 997) {
                values[i] = values[i] + 1000 * i;
            }
            CU_OK(cuCtxSetCurrent(contexts[turn % count]));
            CHECK_LAUNCH((CUfunction) add, (n + 127) / 128, 128, 0, NULL, &block, &n, &value);
            CU_OK(cuCtxSynchronize());
            expected += value;
            for (int i = turn; i < COUNT; i += 997) {
                values[i] = values[i] - 1000 * i;
            }
            for (int i = 0; i < COUNT; i++) {
                check_element("by every device", i, expected, values[i]);
            }
        }
        CU_OK(cuCtxSetCurrent(contexts[owner]));
        CU_OK(cuMemFree(block));
    }
}

/* All devices use the same variables of a library. */
static void check_variables(CUlibrary library) {
    CUkernel touch;
    CUdeviceptr address;
    size_t bytes;
    CU_OK(cuLibraryGetKernel(&touch, library, "touch"));
    CU_OK(cuLibraryGetManaged(&address, &bytes, library, "counter"));
    volatile int *counter = (volatile int *) address;
    int expected = *counter;
    for (int turn = 0; turn < TURNS * count; turn++) {
        CUdeviceptr same;
        CU_OK(cuCtxSetCurrent(contexts[turn % count]));
        CU_OK(cuLibraryGetManaged(&same, &bytes, library, "counter"));
        check_true("one address", same == address);
        *counter += 100;
        CHECK_LAUNCH((CUfunction) touch, 1, 1, 0, NULL, &turn);
        CU_OK(cuCtxSynchronize());
        expected += 100 + turn;
        check_equal("a variable of all devices", expected, *counter);
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    CU_OK(cuInit(0));
    open_contexts();
    CUlibrary kernels, variables;
    CU_OK(cuCtxSetCurrent(contexts[0]));
    CU_OK(cuLibraryLoadFromFile(&kernels, check_ptx_path("kernels.ptx"), NULL, NULL, 0, NULL, NULL, 0));
    CU_OK(cuLibraryLoadFromFile(&variables, check_ptx_path("managed.ptx"), NULL, NULL, 0, NULL, NULL, 0));
    check_blocks(kernels);
    CU_OK(cuCtxSetCurrent(contexts[0]));
    check_variables(variables);
    CU_OK(cuLibraryUnload(variables));
    CU_OK(cuLibraryUnload(kernels));
    return check_pass("%d devices or contexts", count);
}
