/*
 * Access of one GPU to another's memory, and to the host's. The worker answers for two GPUs, because it depends on their
 * connection.
 */
#include "device.h"

#include "hws_cuda_calls.h"
#include "hws_driver.h"

#include <string.h>

HWS_EXPORT CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(canAccessPeer != NULL);
    const hws_device_t *device = hws_device_get(dev), *peer = hws_device_get(peerDev);
    if (device == NULL || peer == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (device == peer) {
        *canAccessPeer = 0; /* as CUDA: no device is its own peer */
        return CUDA_SUCCESS;
    }
    HWS_ENTER();
    return hws_call_hwsPeerAttribute(device->ordinal, peer->ordinal, 0, canAccessPeer);
}

HWS_EXPORT CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
                                            CUdevice dstDevice) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(value != NULL);
    const hws_device_t *source = hws_device_get(srcDevice), *target = hws_device_get(dstDevice);
    if (source == NULL || target == NULL || source == target) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    HWS_REQUIRE((int) attrib > 0);
    HWS_ENTER();
    return hws_call_hwsPeerAttribute(source->ordinal, target->ordinal, (int) attrib, value);
}

/* CUDA checks the operations before the devices. */
static CUresult check_operations(const unsigned *capabilities, const CUatomicOperation *operations, unsigned count) {
    HWS_REQUIRE(capabilities != NULL && operations != NULL && count != 0);
    for (unsigned i = 0; i < count; i++) {
        HWS_REQUIRE((int) operations[i] >= 0 && operations[i] <= CU_ATOMIC_OPERATION_FLOAT_MAX);
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities, const CUatomicOperation *operations,
                                                      unsigned int count, CUdevice dev) {
    HWS_ENTER_LOCAL();
    HWS_TRY(check_operations(capabilities, operations, count));
    if (hws_device_get(dev) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    memset(capabilities, 0, count * sizeof *capabilities); /* as attributes 86 and 147 say: the host is elsewhere */
    return CUDA_SUCCESS;
}

/* Known deviation: the operations of GPUs whose connection has atomics are unknown. */
HWS_EXPORT CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities, const CUatomicOperation *operations,
                                                     unsigned int count, CUdevice srcDevice, CUdevice dstDevice) {
    static _Atomic bool logged;
    HWS_ENTER_LOCAL();
    HWS_TRY(check_operations(capabilities, operations, count));
    int all = 0, some = 0;
    HWS_TRY(cuDeviceGetP2PAttribute(&all, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, srcDevice, dstDevice));
    HWS_TRY(cuDeviceGetP2PAttribute(&some, CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED, srcDevice,
                                    dstDevice));
    if (all != 0 || some != 0) {
        return hws_unsupported_use(&logged, "a query for the atomics of a connection between GPUs");
    }
    memset(capabilities, 0, count * sizeof *capabilities);
    return CUDA_SUCCESS;
}
