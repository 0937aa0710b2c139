/* Access of one GPU to another's memory. The worker answers, because it depends on their connection. */
#include "device.h"

#include "hws_cuda_calls.h"
#include "hws_driver.h"

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
    HWS_REQUIRE(value != NULL && (int) attrib > 0);
    const hws_device_t *source = hws_device_get(srcDevice), *target = hws_device_get(dstDevice);
    if (source == NULL || target == NULL || source == target) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    HWS_ENTER();
    return hws_call_hwsPeerAttribute(source->ordinal, target->ordinal, (int) attrib, value);
}
