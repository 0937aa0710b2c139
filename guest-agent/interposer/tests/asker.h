/* A library that requests the driver's private tables. */
#ifndef ASKER_H
#define ASKER_H

#include "hws_cuda_types.h"

typedef struct asker_driver {
    CUresult (*table)(const void **table, const CUuuid *id);
    CUresult (*version)(int *version);
    CUresult (*init)(unsigned flags);
} asker_driver_t;

/* Requests them as CUPTI does. Returns the driver's answer. */
int asker_ask(const asker_driver_t *driver);

/* Requests them as a CUDA runtime does in its first call. Returns the driver's answer. */
int asker_start(const asker_driver_t *driver);

#endif
