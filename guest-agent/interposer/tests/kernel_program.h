/* The program that a test of libcuda.so.1 stands for: a device's context, a module with one kernel, and a stream. */
#ifndef HWS_TEST_KERNEL_PROGRAM_H
#define HWS_TEST_KERNEL_PROGRAM_H

#include "fake_broker.h"
#include "rules.h"

static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n";
static CUcontext context;
static CUfunction function; /* (int, double, char) */
static CUstream stream;

/* Starts the broker and makes all of these. */
static void start_kernel_program(void) {
    CUmodule module;
    broker_start(BROKER_KIND);
    HWS_CHECK(cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS && cuModuleLoadData(&module, ptx) == CUDA_SUCCESS);
    HWS_CHECK(cuModuleGetFunction(&function, module, "kernel") == CUDA_SUCCESS);
    HWS_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
}

#endif
