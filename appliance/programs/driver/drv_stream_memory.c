/* Streams that wait for values in memory and write them, one by one and in batches; batches of copies. */
#include "check_driver.h"

#ifndef HAWSER_NVIDIA_HEADER
typedef union {
    struct {
        unsigned int operation;
        CUdeviceptr address;
        union {
            unsigned int value;
            unsigned long long value64;
        };
        unsigned int flags;
        CUdeviceptr alias;
    } waitValue, writeValue;
    struct {
        unsigned int operation, flags;
    } memoryBarrier;
    unsigned long long pad[6];
} CUstreamBatchMemOpParams;
typedef struct {
    int srcAccessOrder;
    struct {
        int type, id;
    } srcLocHint, dstLocHint;
    unsigned int flags;
} CUmemcpyAttributes;
#define CU_STREAM_WAIT_VALUE_GEQ 0
#define CU_STREAM_WAIT_VALUE_EQ 1
#define CU_STREAM_WAIT_VALUE_AND 2
#define CU_STREAM_MEM_OP_WAIT_VALUE_32 1
#define CU_STREAM_MEM_OP_WRITE_VALUE_32 2
#define CU_STREAM_MEM_OP_WRITE_VALUE_64 5
#define CU_STREAM_MEM_OP_BARRIER 6
#define CU_MEMCPY_SRC_ACCESS_ORDER_STREAM 1
#define cuStreamWaitValue32 cuStreamWaitValue32_v2
#define cuStreamWaitValue64 cuStreamWaitValue64_v2
#define cuStreamWriteValue32 cuStreamWriteValue32_v2
#define cuStreamWriteValue64 cuStreamWriteValue64_v2
#define cuStreamBatchMemOp cuStreamBatchMemOp_v2
#define cuMemcpyBatchAsync cuMemcpyBatchAsync_v2
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags);
CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr addr, unsigned long long value, unsigned int flags);
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags);
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, unsigned long long value, unsigned int flags);
CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray,
                            unsigned int flags);
CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                            CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, CUstream hStream);
#endif

enum { COUNT = 4096 };

/* One stream waits for the value that the other writes after its kernel. */
static void in_order(CUfunction add, CUstream first, CUstream second) {
    CUdeviceptr values = check_device(NULL, COUNT * sizeof(int)), flag = check_device(NULL, 16);
    int count = COUNT, one = 1, two = 2, *back = check_memory(COUNT * sizeof(int));
    CU_OK(cuMemsetD32(values, 0, COUNT));
    CU_OK(cuMemsetD32(flag, 0, 4));
    CU_OK(cuCtxSynchronize());
    CU_OK(cuStreamWaitValue32(second, flag, 7, CU_STREAM_WAIT_VALUE_EQ));
    CHECK_LAUNCH(add, (COUNT + 255) / 256, 256, 0, second, &values, &count, &two);
    CU_OK(cuStreamWriteValue64(second, flag + 8, 1ull << 40, 0));
    CHECK_LAUNCH(add, (COUNT + 255) / 256, 256, 0, first, &values, &count, &one);
    CU_OK(cuStreamWriteValue32(first, flag, 7, 0));
    CU_OK(cuStreamWaitValue64(first, flag + 8, 1ull << 40, CU_STREAM_WAIT_VALUE_GEQ));
    CU_OK(cuMemcpyDtoHAsync(back, values, COUNT * sizeof(int), first));
    CU_OK(cuStreamSynchronize(first));
    CU_OK(cuStreamSynchronize(second));
    for (int i = 0; i < COUNT; i++) {
        check_element("after both streams", i, 3, back[i]);
    }
    unsigned int words[4];
    CU_OK(cuMemcpyDtoH(words, flag, sizeof words));
    check_equal("the word", 7, words[0]);
    check_equal("the word beside", 0, words[1]);
    check_equal("the upper half of the long word", 256, words[3]);
    CU_OK(cuMemFree(values));
    CU_OK(cuMemFree(flag));
    free(back);
}

/* The host and a stream wait for each other's words in pinned memory. */
static void with_host(CUfunction add, CUstream stream) {
    volatile unsigned int *words;
    int count = COUNT, one = 1;
    CUdeviceptr values = check_device(NULL, COUNT * sizeof(int));
    CU_OK(cuMemHostAlloc((void **) &words, 64, CU_MEMHOSTALLOC_PORTABLE));
    CUdeviceptr address = (CUdeviceptr) (uintptr_t) words;
    CU_OK(cuMemsetD32(values, 0, COUNT));
    CU_OK(cuCtxSynchronize());
    for (unsigned int turn = 1; turn <= 5; turn++) {
        CU_OK(cuStreamWaitValue32(stream, address, turn, CU_STREAM_WAIT_VALUE_GEQ));
        CHECK_LAUNCH(add, (COUNT + 255) / 256, 256, 0, stream, &values, &count, &one);
        CU_OK(cuStreamWriteValue32(stream, address + 32, turn, 0));
        check_true("the stream waits for the host", words[8] < turn);
        words[0] = turn;
        while (words[8] != turn) {
        }
    }
    int last = 0;
    CU_OK(cuMemcpyDtoHAsync(&last, values + (COUNT - 1) * sizeof(int), sizeof last, stream));
    CU_OK(cuStreamSynchronize(stream));
    check_equal("kernels between the words", 5, last);
    CU_OK(cuMemFreeHost((void *) words));
    CU_OK(cuMemFree(values));
}

static void batches(CUstream stream) {
    CUdeviceptr flags = check_device(NULL, 64);
    CUstreamBatchMemOpParams ops[5];
    unsigned int words[16];
    CU_OK(cuMemsetD32(flags, 0, 16));
    CU_OK(cuCtxSynchronize());
    memset(ops, 0, sizeof ops);
    ops[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[0].writeValue.address = flags + 4;
    ops[0].writeValue.value = 12;
    ops[1].memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
    ops[2].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    ops[2].waitValue.address = flags + 4;
    ops[2].waitValue.value = 8;
    ops[2].waitValue.flags = CU_STREAM_WAIT_VALUE_AND;
    ops[3].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    ops[3].writeValue.address = flags + 16;
    ops[3].writeValue.value64 = 0x500000006ull;
    CU_OK(cuStreamBatchMemOp(stream, 4, ops, 0));
    CU_OK(cuStreamSynchronize(stream));
    CU_OK(cuMemcpyDtoH(words, flags, sizeof words));
    check_equal("written in the batch", 12, words[1]);
    check_equal("low half", 6, words[4]);
    check_equal("high half", 5, words[5]);
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, flags + 2, 1, 0));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue64(stream, flags + 4, 1, 0));
    CU_OK(cuMemFree(flags));
}

static void copies(CUstream stream) {
    enum { COPIES = 20, BYTES = 1000 };
    CUdeviceptr device = check_device(NULL, COPIES * BYTES), dsts[COPIES], srcs[COPIES];
    unsigned char *out = check_memory(COPIES * BYTES), *back = check_memory(COPIES * BYTES);
    size_t sizes[COPIES], index = 0;
    CUmemcpyAttributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    for (int i = 0; i < COPIES; i++) {
        memset(out + i * BYTES, i + 1, BYTES);
        dsts[i] = device + (size_t) (COPIES - 1 - i) * BYTES;
        srcs[i] = (CUdeviceptr) (uintptr_t) (out + i * BYTES);
        sizes[i] = (size_t) (BYTES - i);
    }
    CU_OK(cuMemsetD8(device, 0xFF, COPIES * BYTES));
    CU_OK(cuCtxSynchronize());
    CU_OK(cuMemcpyBatchAsync(dsts, srcs, sizes, COPIES, &attributes, &index, 1, stream));
    CU_OK(cuStreamSynchronize(stream));
    CU_OK(cuMemcpyDtoH(back, device, COPIES * BYTES));
    for (int i = 0; i < COPIES; i++) {
        const unsigned char *at = back + (COPIES - 1 - i) * BYTES;
        check_element("first of a copy", i, i + 1, at[0]);
        check_element("last of a copy", i, i + 1, at[BYTES - i - 1]);
        if (i > 0) {
            check_element("behind a copy", i, 0xFF, at[BYTES - i]);
        }
    }
    CU_OK(cuMemFree(device));
    free(out);
    free(back);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    CUstream first, second;
    int supported = 0, version = 0;
    CU_OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    CU_OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    CU_OK(cuDriverGetVersion(&version));
    if (version >= 13000) {
        copies(first);
    }
    CU_OK(cuDeviceGetAttribute(&supported, (CUdevice_attribute) 122, 0));
    if (!supported) {
        CUdeviceptr flag = check_device(NULL, 8);
        CU_IS(CUDA_ERROR_NOT_SUPPORTED, cuStreamWriteValue32(first, flag, 1, 0));
        CU_IS(CUDA_ERROR_NOT_SUPPORTED, cuStreamWaitValue32(first, flag, 1, 0));
        check_unsupported("the device has no stream memory operations (attribute 122)");
    }
    CUmodule module = check_module("kernels.ptx");
    in_order(check_function(module, "add_value"), first, second);
    with_host(check_function(module, "add_value"), first);
    batches(first);
    CU_OK(cuModuleUnload(module));
    CU_OK(cuStreamDestroy(first));
    CU_OK(cuStreamDestroy(second));
    return check_pass("waits and writes of two streams, a batch, a batch of copies");
}
