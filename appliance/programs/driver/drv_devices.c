/*
 * Every device, and the interaction of devices: primary contexts, a library's kernels and variables in several
 * contexts, streams and events across devices, copies between devices, peer access according to the attributes. With
 * one device, two of its contexts take the place of two devices.
 */
#include "check_driver.h"

#define MAX_DEVICES 4
#define COUNT 5000

#ifndef HAWSER_NVIDIA_HEADER
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
#define CUDA_ERROR_PEER_ACCESS_UNSUPPORTED ((CUresult) 217)
#define CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED ((CUresult) 704)
#define CUDA_ERROR_PEER_ACCESS_NOT_ENABLED ((CUresult) 705)
enum { CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED = 2 };
typedef struct CUDA_MEMCPY3D_PEER_st {
    size_t srcXInBytes, srcY, srcZ, srcLOD;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    CUcontext srcContext;
    size_t srcPitch, srcHeight;
    size_t dstXInBytes, dstY, dstZ, dstLOD;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    CUcontext dstContext;
    size_t dstPitch, dstHeight;
    size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D_PEER;
CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
                               void **jitOptionsValues, unsigned int numJitOptions, void *libraryOptions,
                               void **libraryOptionValues, unsigned int numLibraryOptions);
CUresult cuLibraryUnload(CUlibrary library);
CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name);
CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library);
CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name);
CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev);
CUresult cuDeviceGetP2PAttribute(int *value, int attrib, CUdevice srcDevice, CUdevice dstDevice);
CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags);
CUresult cuCtxDisablePeerAccess(CUcontext peerContext);
CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                      size_t ByteCount);
CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                           size_t ByteCount, CUstream hStream);
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy);
#endif

/* One device, or one context of the only device. */
struct place {
    CUdevice device;
    CUcontext context;
    CUstream stream;
    CUevent event;
    CUdeviceptr memory;
    int expected[COUNT];
};

static struct place places[MAX_DEVICES];
static int count;

static void compare(const char *what, const struct place *place) {
    static int got[COUNT];
    CU_OK(cuCtxSetCurrent(place->context));
    CU_OK(cuMemcpyDtoH(got, place->memory, sizeof(got)));
    for (int i = 0; i < COUNT; i++) {
        if (got[i] != place->expected[i]) {
            check_fail("%s: element %d, expected %d, got %d", what, i, place->expected[i], got[i]);
        }
    }
}

static void open_places(void) {
    int devices;
    CU_OK(cuDeviceGetCount(&devices));
    check_true("a device", devices > 0);
    check_equal("devices", check_option("--devices", devices), devices); /* for a caller that knows the number */
    CUdevice none;
    CU_IS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&none, devices));
    count = devices == 1 ? 2 : devices < MAX_DEVICES ? devices : MAX_DEVICES;
    for (int p = 0; p < count; p++) {
        struct place *place = &places[p];
        CU_OK(cuDeviceGet(&place->device, devices == 1 ? 0 : p));
        if (devices == 1 && p == 1) {
            CU_OK(cuCtxCreate_v2(&place->context, 0, place->device));
        } else {
            CU_OK(cuDevicePrimaryCtxRetain(&place->context, place->device));
            CU_OK(cuCtxSetCurrent(place->context));
        }
        CUdevice device = -1;
        CU_OK(cuCtxGetDevice(&device));
        check_equal("the context's device", place->device, device);
        CU_OK(cuStreamCreate(&place->stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cuEventCreate(&place->event, CU_EVENT_DISABLE_TIMING));
        for (int i = 0; i < COUNT; i++) {
            place->expected[i] = (p + 1) * 100000 + i;
        }
        place->memory = check_device(place->expected, sizeof(place->expected));
    }
}

/* A kernel of one library, launched in each context by the same handle. */
static void check_library(CUlibrary library) {
    CUkernel add;
    CU_OK(cuCtxSetCurrent(places[0].context));
    CU_OK(cuLibraryGetKernel(&add, library, "add_value"));
    int n = COUNT;
    for (int round = 1; round <= 3; round++) {
        for (int p = 0; p < count; p++) {
            int value = round * 10 + p;
            CU_OK(cuCtxSetCurrent(places[p].context));
            CHECK_LAUNCH((CUfunction) add, (n + 127) / 128, 128, 0, round == 2 ? NULL : places[p].stream,
                         &places[p].memory, &n, &value);
            for (int i = 0; i < COUNT; i++) {
                places[p].expected[i] += value;
            }
            CU_OK(cuCtxSynchronize());
        }
    }
    for (int p = 0; p < count; p++) {
        compare("a library's kernel in each context", &places[p]);
    }
}

/* A library's variables: each context has its own, with the initial value. */
static void check_variables(CUlibrary library) {
    CUkernel read;
    CUdeviceptr address[MAX_DEVICES], out[MAX_DEVICES];
    double got[4];
    CU_OK(cuCtxSetCurrent(places[count - 1].context));
    CU_OK(cuLibraryGetKernel(&read, library, "read_globals"));
    for (int p = 0; p < count; p++) {
        size_t bytes = 0;
        CU_OK(cuCtxSetCurrent(places[p].context));
        out[p] = check_device(NULL, sizeof(got));
        CU_OK(cuLibraryGetGlobal(&address[p], &bytes, library, "counter"));
        check_equal("size of counter", 4, (long long) bytes);
        for (int q = 0; q < p; q++) {
            check_true("a variable of its own", address[p] != address[q]);
        }
        int value = 0;
        CU_OK(cuMemcpyDtoH(&value, address[p], 4));
        check_equal("initial value", 5, value);
        value = 1000 * (p + 1);
        CU_OK(cuMemcpyHtoD(address[p], &value, 4));
    }
    for (int p = count - 1; p >= 0; p--) {
        CU_OK(cuCtxSetCurrent(places[p].context));
        CHECK_LAUNCH((CUfunction) read, 1, 1, 0, NULL, &out[p]);
        CU_OK(cuMemcpyDtoH(got, out[p], sizeof(got)));
        check_near("the context's variable", p, 1000.0 * (p + 1), got[0], 0);
        int value = 0;
        CU_OK(cuMemcpyDtoH(&value, address[p], 4));
        check_equal("counted in its context", 1000 * (p + 1) + 1, value);
        CUmodule module;
        CUdeviceptr again = 0;
        CU_OK(cuLibraryGetModule(&module, library));
        CU_OK(cuModuleGetGlobal(&again, NULL, module, "counter"));
        check_true("the same by the context's module", again == address[p]);
        CU_OK(cuMemFree(out[p]));
    }
}

/* Each device receives the values of the previous one. */
static void check_copies(void) {
    static int carried[COUNT];
    for (int p = 0; p < count; p++) {
        struct place *from = &places[p], *to = &places[(p + 1) % count];
        CU_OK(cuCtxSetCurrent(p % 2 == 0 ? from->context : to->context));
        CU_OK(cuMemcpyPeer(to->memory, to->context, from->memory, from->context, sizeof(carried)));
        memcpy(to->expected, from->expected, sizeof(carried));
        compare("a copy between devices", to);
        for (int i = 0; i < COUNT; i++) {
            to->expected[i] = to->expected[i] * 3 + p;
        }
        CU_OK(cuMemcpyHtoD(to->memory, to->expected, sizeof(carried)));
        CU_OK(cuMemcpy(from->memory, to->memory, sizeof(carried) / 2));
        memcpy(from->expected, to->expected, sizeof(carried) / 2);
        compare("a copy of default kind", from);
    }
    struct place *from = &places[0], *to = &places[1];
    CU_OK(cuCtxSetCurrent(from->context));
    CUDA_MEMCPY3D_PEER box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                              .srcDevice = from->memory,
                              .srcContext = from->context,
                              .srcPitch = 400,
                              .srcHeight = 10,
                              .srcXInBytes = 16,
                              .srcY = 1,
                              .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                              .dstDevice = to->memory,
                              .dstContext = to->context,
                              .dstPitch = 400,
                              .dstHeight = 10,
                              .dstXInBytes = 80,
                              .dstZ = 1,
                              .WidthInBytes = 200,
                              .Height = 5,
                              .Depth = 2};
    CU_OK(cuMemcpy3DPeer(&box));
    for (int z = 0; z < 2; z++) {
        for (int y = 0; y < 5; y++) {
            for (int x = 0; x < 50; x++) {
                to->expected[((z + 1) * 10 + y) * 100 + 20 + x] = from->expected[(z * 10 + y + 1) * 100 + 4 + x];
            }
        }
    }
    compare("a box between devices", to);
}

/* A chain through all devices: streams wait for events of other devices. */
static void check_chain(CUlibrary library) {
    CUkernel add;
    int n = COUNT;
    CU_OK(cuCtxSetCurrent(places[0].context));
    CU_OK(cuLibraryGetKernel(&add, library, "add_value"));
    for (int p = 0; p < count; p++) {
        CU_OK(cuCtxSetCurrent(places[p].context));
        CU_OK(cuCtxSynchronize());
    }
    for (int turn = 0; turn < 4 * count; turn++) {
        struct place *here = &places[turn % count], *next = &places[(turn + 1) % count];
        int value = turn + 1;
        CU_OK(cuCtxSetCurrent(here->context));
        CHECK_LAUNCH((CUfunction) add, (n + 127) / 128, 128, 0, here->stream, &here->memory, &n, &value);
        CU_OK(cuMemcpyPeerAsync(next->memory, next->context, here->memory, here->context, sizeof(here->expected),
                                here->stream));
        CU_OK(cuEventRecord(here->event, here->stream));
        CU_OK(cuCtxSetCurrent(next->context));
        CU_OK(cuStreamWaitEvent(next->stream, here->event, 0));
        for (int i = 0; i < COUNT; i++) {
            here->expected[i] += value;
        }
        memcpy(next->expected, here->expected, sizeof(here->expected));
    }
    CU_OK(cuStreamSynchronize(places[0].stream)); /* the chain ends at the first device again */
    for (int p = 0; p < count; p++) {
        compare("a chain through the devices", &places[p]);
    }
}

static void check_peers(CUlibrary library) {
    CUkernel add;
    int n = COUNT, can, attribute, value = 7;
    CU_OK(cuCtxSetCurrent(places[0].context));
    CU_OK(cuLibraryGetKernel(&add, library, "add_value"));
    CU_OK(cuDeviceCanAccessPeer(&can, 0, 0));
    check_equal("a device and itself", 0, can);
    CU_IS(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, cuCtxEnablePeerAccess(places[0].context, 0));
    for (int p = 0; p < count; p++) {
        struct place *here = &places[p], *peer = &places[(p + 1) % count];
        if (here->device == peer->device) {
            continue;
        }
        CU_OK(cuDeviceCanAccessPeer(&can, here->device, peer->device));
        CU_OK(
            cuDeviceGetP2PAttribute(&attribute, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, here->device, peer->device));
        check_equal("the attribute agrees", can, attribute);
        CU_OK(cuCtxSetCurrent(here->context));
        CU_IS(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(peer->context));
        if (!can) {
            CU_IS(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, cuCtxEnablePeerAccess(peer->context, 0));
            continue;
        }
        CU_OK(cuCtxEnablePeerAccess(peer->context, 0));
        CU_IS(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(peer->context, 0));
        CHECK_LAUNCH((CUfunction) add, (n + 127) / 128, 128, 0, here->stream, &peer->memory, &n, &value);
        CU_OK(cuStreamSynchronize(here->stream));
        for (int i = 0; i < COUNT; i++) {
            peer->expected[i] += value;
        }
        compare("a kernel on another device's memory", peer);
        CU_OK(cuCtxSetCurrent(here->context));
        CU_OK(cuMemcpyPeer(here->memory, here->context, peer->memory, peer->context, sizeof(here->expected)));
        memcpy(here->expected, peer->expected, sizeof(here->expected));
        compare("a copy with peer access", here);
        CU_OK(cuCtxSetCurrent(here->context));
        CU_OK(cuCtxDisablePeerAccess(peer->context));
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    CU_OK(cuInit(0));
    open_places();
    CUlibrary kernels, globals;
    CU_OK(cuLibraryLoadFromFile(&kernels, check_ptx_path("kernels.ptx"), NULL, NULL, 0, NULL, NULL, 0));
    CU_OK(cuLibraryLoadFromFile(&globals, check_ptx_path("globals.ptx"), NULL, NULL, 0, NULL, NULL, 0));
    check_library(kernels);
    check_variables(globals);
    check_copies();
    check_chain(kernels);
    check_peers(kernels);
    CU_OK(cuLibraryUnload(globals));
    CU_OK(cuLibraryUnload(kernels));
    for (int p = 0; p < count; p++) {
        CU_OK(cuCtxSetCurrent(places[p].context));
        CU_OK(cuMemFree(places[p].memory));
        CU_OK(cuEventDestroy(places[p].event));
        CU_OK(cuStreamDestroy(places[p].stream));
    }
    return check_pass("libraries, variables, copies, events and peer access of all devices");
}
