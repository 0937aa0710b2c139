/*
 * Batches of decompressions by the device's engine. The block is LZ4's: one sequence of literals. A device without an
 * engine, whose attribute is 0, refuses.
 */
#include "check_driver.h"

#ifndef HAWSER_NVIDIA_HEADER
typedef enum { CU_MEM_DECOMPRESS_ALGORITHM_LZ4 = 4 } CUmemDecompressAlgorithm;
typedef struct {
    size_t srcNumBytes, dstNumBytes;
    uint32_t *dstActBytes;
    const void *src;
    void *dst;
    CUmemDecompressAlgorithm algo;
    unsigned char padding[20];
} CUmemDecompressParams;
CUresult cuMemBatchDecompressAsync(CUmemDecompressParams *paramsArray, size_t count, unsigned int flags,
                                   size_t *errorIndex, CUstream stream);
#endif

enum { LITERALS = 200, COUNT = 300, ALGORITHMS = 136, CAPABLE = 21 };

/* One block: a token, the rest of the length, the literals. */
static size_t block(unsigned char *bytes, int seed) {
    size_t length = 0;
    bytes[length++] = 0xF0;
    bytes[length++] = LITERALS - 15;
    for (int i = 0; i < LITERALS; i++) {
        bytes[length++] = (unsigned char) (seed + i);
    }
    return length;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    int algorithms = -1;
    unsigned capable = 7;
    CU_OK(cuDeviceGetAttribute(&algorithms, (CUdevice_attribute) ALGORITHMS, 0));
    CUdeviceptr memory = check_device(NULL, 4096 + COUNT * 1024);
    CU_OK(cuPointerGetAttribute(&capable, (CUpointer_attribute) CAPABLE, memory));
    /* Driver 580 answers 1 on an H200 although that has no engine. */
    check_true("memory can be decompressed", algorithms == 0 || (capable & 0xFF) != 0);
    CUmemDecompressParams params[COUNT];
    memset(params, 0, sizeof params);
    size_t index = 0;
    for (int i = 0; i < COUNT; i++) {
        unsigned char bytes[LITERALS + 2];
        CUdeviceptr at = memory + 4096 + (size_t) i * 1024;
        params[i].srcNumBytes = block(bytes, i);
        params[i].dstNumBytes = LITERALS;
        params[i].dstActBytes = (uint32_t *) (uintptr_t) (memory + (size_t) i * 4);
        params[i].src = (const void *) (uintptr_t) at;
        params[i].dst = (void *) (uintptr_t) (at + 512);
        params[i].algo = CU_MEM_DECOMPRESS_ALGORITHM_LZ4;
        CU_OK(cuMemcpyHtoD(at, bytes, sizeof bytes));
    }
    CUresult result = cuMemBatchDecompressAsync(params, COUNT, 0, &index, NULL);
    if ((algorithms & CU_MEM_DECOMPRESS_ALGORITHM_LZ4) == 0) {
        check_true("a device without an engine refuses", result != CUDA_SUCCESS);
        CU_OK(cuMemFree(memory));
        check_unsupported("the device has no engine for LZ4 (attribute 136)");
    }
    CU_OK(result);
    CU_OK(cuCtxSynchronize());
    for (int i = 0; i < COUNT; i++) {
        unsigned char got[LITERALS];
        uint32_t length = 0;
        CU_OK(cuMemcpyDtoH(&length, memory + (size_t) i * 4, sizeof length));
        check_equal("length", LITERALS, length);
        CU_OK(cuMemcpyDtoH(got, memory + 4096 + (size_t) i * 1024 + 512, sizeof got));
        for (int j = 0; j < LITERALS; j++) {
            check_element("a byte", j, (unsigned char) (i + j), got[j]);
        }
    }
    CU_OK(cuMemFree(memory));
    return check_pass("%d blocks of LZ4", COUNT);
}
