/* The devices that the program sees: the worker's devices that CUDA_VISIBLE_DEVICES selects, in its order. */
#ifndef HWS_DEVICE_H
#define HWS_DEVICE_H

#include "hws_cuda_types.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct hws_device {
    int ordinal; /* the worker's number of the device */
    HwsDeviceInfo info;
} hws_device_t;

/* Loads the worker's devices and applies CUDA_VISIBLE_DEVICES. Called once, before any other function here. */
CUresult hws_devices_load(uint32_t count);

int hws_device_count(void);

/* NULL when the program has no such device. */
const hws_device_t *hws_device_get(CUdevice device);

/* An attribute as cuDeviceGetAttribute returns it; 0 when the worker does not know it. The device must exist. */
int hws_device_attribute(CUdevice device, CUdevice_attribute attribute);

/*
 * Picks devices as CUDA_VISIBLE_DEVICES does. The list has indices, or beginnings of UUIDs ("GPU-1b2c"), separated by
 * commas. An entry that names no device, or several, ends the list. A device that is named twice empties it.
 *
 * @param list the variable's text; NULL picks all.
 * @param chosen_p receives indices into `devices`.
 * @return the number of picked devices.
 */
int hws_devices_choose(const char *list, const hws_device_t *devices, int count, int *chosen_p);

#endif
