/*
 * The documented Driver API; these libraries need nothing else of libcuda.so.1. Types and prototypes are generated from
 * the description. With HWS_NVIDIA_DRIVER_HEADER the types come from NVIDIA's headers, and the compiler compares the
 * generated prototypes with NVIDIA's.
 */
#ifndef HWS_CUDART_DRIVER_H
#define HWS_CUDART_DRIVER_H

#ifdef HWS_NVIDIA_DRIVER_HEADER
#define __CUDA_API_VERSION_INTERNAL /* cuda.h declares each version of a function by its exported name */
#include <cuda.h>
#include <cudaProfiler.h>
#undef __CUDA_API_VERSION_INTERNAL
#include "hws_cuda_functions.h"
#else
#include "hws_cuda_types.h"
#endif

#endif
