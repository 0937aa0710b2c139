/*
 * Managed variables of modules and libraries. The host uses them at the devices' address. Modules have their own, and
 * libraries share theirs between contexts. Other memory of the process at their addresses stays as it is.
 */
#include "check_driver.h"

#include <string.h>
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#ifndef HAWSER_NVIDIA_HEADER
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr);
CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
                               void **jitOptionsValues, unsigned int numJitOptions, void *libraryOptions,
                               void **libraryOptionValues, unsigned int numLibraryOptions);
CUresult cuLibraryUnload(CUlibrary library);
CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name);
CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name);
CUresult cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name);
#define cuMemGetAddressRange cuMemGetAddressRange_v2
#endif

static const size_t PAGE = 4096;

struct variables {
    volatile int *counter;
    volatile long long *sums;
    volatile char *large;
};

static void *find(CUmodule module, const char *name, size_t expected) {
    CUdeviceptr address;
    size_t bytes = 0;
    CU_OK(cuModuleGetGlobal(&address, &bytes, module, name));
    check_equal(name, (long long) expected, (long long) bytes);
    return (void *) address;
}

static struct variables variables_of(CUmodule module) {
    return (struct variables) {find(module, "counter", 4), find(module, "sums", 24), find(module, "large", 100000)};
}

static void check_initial(const struct variables *variables) {
    check_equal("initial counter", 7, *variables->counter);
    for (int i = 0; i < 3; i++) {
        check_equal("initial sum", i + 1, variables->sums[i]);
    }
    check_equal("first zero", 0, variables->large[0]);
    check_equal("last zero", 0, variables->large[99999]);
}

static void launch_touch(CUfunction touch, int addend) {
    CHECK_LAUNCH(touch, 1, 1, 0, NULL, &addend);
    CU_OK(cuCtxSynchronize());
}

static void check_attributes(const struct variables *variables) {
    const CUdeviceptr inside = (CUdeviceptr) (variables->sums + 1);
    int value = 9;
    CUdeviceptr address = 0;
    size_t bytes = 0;
    CUcontext context = (CUcontext) 1;
    CU_OK(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_IS_MANAGED, inside));
    check_equal("managed", 1, value);
    CU_OK(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside));
    check_equal("memory type", CU_MEMORYTYPE_DEVICE, value);
    CU_OK(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inside));
    check_equal("device", 0, value);
    CU_OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, inside));
    check_true("no context", context == NULL);
    CU_OK(cuPointerGetAttribute(&address, CU_POINTER_ATTRIBUTE_HOST_POINTER, inside));
    check_true("host pointer", address == inside);
    CU_OK(cuPointerGetAttribute(&address, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, inside));
    check_true("device pointer", address == inside);
    CU_OK(cuPointerGetAttribute(&address, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside));
    check_true("first byte", address == (CUdeviceptr) variables->sums);
    CU_OK(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside));
    check_equal("length", 24, (long long) bytes);
    CU_OK(cuMemGetAddressRange(&address, &bytes, inside));
    check_true("range", address == (CUdeviceptr) variables->sums && bytes == 24);
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemFree((CUdeviceptr) variables->counter));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&address, (CUdeviceptr) variables->counter, 5));
}

/* Two modules of one image, whose variables the driver may place in one page. */
static void check_modules(void) {
    CUmodule modules[2];
    CUfunction touch[2];
    struct variables variables[2];
    for (int m = 0; m < 2; m++) {
        modules[m] = check_module("managed.ptx");
        touch[m] = check_function(modules[m], "touch");
        variables[m] = variables_of(modules[m]);
        check_initial(&variables[m]);
    }
    check_true("own variables", variables[0].counter != variables[1].counter);
    check_attributes(&variables[1]);
    for (int round = 1; round <= 5; round++) {
        for (int m = 0; m < 2; m++) {
            *variables[m].counter = 100 * m;
            *variables[1 - m].counter = -1;
            variables[m].large[0] = (char) round;
            launch_touch(touch[m], round);
            check_equal("counter", 100 * m + round, *variables[m].counter);
            check_equal("counter of the other module", -1, *variables[1 - m].counter);
            check_equal("what the host wrote", round, variables[m].large[0]);
            check_equal("what the kernel wrote", round, variables[m].large[99999]);
        }
    }
    check_equal("sum", 2 + (1 + 2 + 3 + 4 + 5) + 5 * 5, variables[0].sums[1]);
    *variables[1].counter = 55;
    CU_OK(cuModuleUnload(modules[0]));
    check_equal("after the other module has gone", 55, *variables[1].counter);
    launch_touch(touch[1], 1);
    check_equal("and after a kernel", 56, *variables[1].counter);
    CU_OK(cuModuleUnload(modules[1]));
}

/* A kernel's argument and an element of memory point to a variable. */
static void check_pointers(void) {
    CUmodule module = check_module("managed.ptx");
    CUfunction follow = check_function(module, "follow");
    struct variables variables = variables_of(module);
    volatile long long *last = &variables.sums[2];
    int addend = 40;
    CHECK_LAUNCH(follow, 1, 1, 0, NULL, &last, &addend);
    CU_OK(cuCtxSynchronize());
    check_equal("by a pointer", 43, *last);
    CU_OK(cuMemsetD32((CUdeviceptr) variables.counter, 66, 1));
    CU_OK(cuCtxSynchronize());
    check_equal("after a fill", 66, *variables.counter);
    CU_OK(cuModuleUnload(module));
}

/*
 * The process uses the addresses of variables of an unloaded module, and loads the module again. NVIDIA's own driver
 * keeps the addresses, so there the process does not get them.
 */
static void check_taken_addresses(void) {
    CUmodule module = check_module("managed.ptx");
    void *page = (void *) ((size_t) variables_of(module).counter / PAGE * PAGE);
    CU_OK(cuModuleUnload(module));
    const size_t length = 64 * PAGE;
    char *own = mmap(page, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (own == page) {
        memset(own, 'o', length);
    }
    module = check_module("managed.ptx");
    struct variables variables = variables_of(module);
    check_initial(&variables);
    check_true("another page", own != page || (size_t) variables.counter / PAGE != (size_t) page / PAGE);
    launch_touch(check_function(module, "touch"), 3);
    check_equal("counter", 10, *variables.counter);
    for (size_t i = 0; own == page && i < length; i++) {
        check_element("memory of the process", (long long) i, 'o', own[i]);
    }
    CU_OK(cuModuleUnload(module));
    if (own != MAP_FAILED) {
        munmap(own, length);
    }
}

/* A library has one set of variables, whichever context uses it. */
static void check_library(CUcontext first) {
    CUlibrary library;
    CUkernel touch;
    CUcontext second;
    CUdevice device;
    CUdeviceptr address, again, plain;
    size_t bytes = 0;
    CU_OK(cuLibraryLoadFromFile(&library, check_ptx_path("managed.ptx"), NULL, NULL, 0, NULL, NULL, 0));
    CU_OK(cuLibraryGetManaged(&address, &bytes, library, "counter"));
    check_equal("size of counter", 4, (long long) bytes);
    CU_OK(cuLibraryGetGlobal(&again, &bytes, library, "counter"));
    check_true("one address", address == again);
    CU_IS(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&plain, &bytes, library, "plain"));
    CU_IS(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&plain, &bytes, library, "none"));
    volatile int *counter = (volatile int *) address;
    check_equal("initial counter", 7, *counter);
    CU_OK(cuLibraryGetKernel(&touch, library, "touch"));
    launch_touch((CUfunction) touch, 3);
    check_equal("in the first context", 10, *counter);
    CU_OK(cuCtxGetDevice(&device));
    CU_OK(cuCtxCreate_v2(&second, 0, device));
    CU_OK(cuLibraryGetManaged(&again, &bytes, library, "counter"));
    check_true("the same variable in a second context", address == again);
    *counter += 100;
    launch_touch((CUfunction) touch, 5);
    check_equal("in the second context", 115, *counter);
    CU_OK(cuCtxSetCurrent(first));
    launch_touch((CUfunction) touch, 1);
    check_equal("in the first context again", 116, *counter);
    CU_OK(cuCtxDestroy(second));
    check_equal("after the second context", 116, *counter);
    CU_OK(cuLibraryUnload(library));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    CUcontext context = check_context();
    check_modules();
    check_pointers();
    check_taken_addresses();
    check_library(context);
    return check_pass("3 variables of modules and a library");
}
