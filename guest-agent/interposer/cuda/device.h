/* The devices that the program sees: those of the worker that CUDA_VISIBLE_DEVICES leaves, in its order. */
#ifndef HWS_DEVICE_H
#define HWS_DEVICE_H

#include "hws_cuda_types.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct hws_device {
    int ordinal; /* the worker's number of it */
    HwsDeviceInfo info;
} hws_device_t;

/* Asks the worker for its devices and applies CUDA_VISIBLE_DEVICES. Called once, before any other function here. */
CUresult hws_devices_load(uint32_t count);

int hws_device_count(void);

/* NULL when the program has no such device. */
const hws_device_t *hws_device_get(CUdevice device);

/* An attribute as cuDeviceGetAttribute gives it; 0 for one that the worker does not know. The device must exist. */
int hws_device_attribute(CUdevice device, CUdevice_attribute attribute);

/*
 * Picks devices as CUDA_VISIBLE_DEVICES does: a list of indices, or of starts of UUIDs ("GPU-1b2c"), separated by
 * commas. What follows the first entry that names no device, or several, is ignored; one that is named twice leaves
 * none.
 *
 * @param list the variable's text; NULL picks all.
 * @param chosen_p receives indices into `devices`.
 * @return how many.
 */
int hws_devices_choose(const char *list, const hws_device_t *devices, int count, int *chosen_p);

#endif
