/* Copies to pinned memory in many streams at the same time, each longer than a record. Over TCP each makes its stream
 * wait in the worker until the guest has the data. Every second round, a host function of the guest holds one more
 * stream until all copies have arrived. In the last rounds, a short copy stands before and behind each long one. */
#include "check_driver.h"

#include <stdatomic.h>

CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream);

#define STREAMS 64 /* more than a GPU has queues */
#define ROUNDS 8
#define SHORT 256
#define BYTES ((size_t) 3 << 19) /* more than a record; all fit a small region */

static atomic_int arrived;

static void wait_for_copies(void *data) {
    (void) data;
    while (!arrived) {
        usleep(200);
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    uint8_t *host;
    CUstream streams[STREAMS], held;
    uint8_t *shorts; /* of each stream: what it copies before and behind its long copy */
    CU_OK(cuMemHostAlloc((void **) &host, STREAMS * BYTES, 0));
    CU_OK(cuMemHostAlloc((void **) &shorts, (size_t) STREAMS * 2 * SHORT, 0));
    CUdeviceptr device = check_device(NULL, STREAMS * BYTES);
    CU_OK(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < STREAMS; i++) {
            CU_OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
            CU_OK(cuMemsetD8Async(device + i * BYTES, (unsigned char) (i + 1 + (size_t) round), BYTES, streams[i]));
        }
        arrived = 0;
        if (round % 2 == 1) {
            CU_OK(cuLaunchHostFunc(held, wait_for_copies, NULL));
        }
        int has_shorts = round >= ROUNDS / 2;
        for (size_t i = 0; i < STREAMS; i++) {
            CUdeviceptr from = device + i * BYTES;
            if (has_shorts) {
                CU_OK(cuMemcpyDtoHAsync(shorts + 2 * i * SHORT, from, SHORT, streams[i]));
            }
            CU_OK(cuMemcpyDtoHAsync(host + i * BYTES, from, BYTES, streams[i]));
            if (has_shorts) {
                CU_OK(cuMemcpyDtoHAsync(shorts + (2 * i + 1) * SHORT, from, SHORT, streams[i]));
            }
        }
        for (size_t i = 0; i < STREAMS; i++) {
            CU_OK(cuStreamSynchronize(streams[i]));
            for (size_t byte = 0; byte < BYTES; byte += 4093) {
                check_element("byte", (long long) (i * BYTES + byte), (int) i + 1 + round, host[i * BYTES + byte]);
            }
            for (size_t byte = 0; has_shorts && byte < 2 * SHORT; byte += SHORT / 2) {
                check_element("short", (long long) (2 * i * SHORT + byte), (int) i + 1 + round,
                              shorts[2 * i * SHORT + byte]);
            }
            CU_OK(cuStreamDestroy(streams[i]));
        }
        arrived = 1;
        CU_OK(cuStreamSynchronize(held));
    }
    CU_OK(cuStreamDestroy(held));
    CU_OK(cuMemFreeHost(host));
    CU_OK(cuMemFreeHost(shorts));
    CU_OK(cuMemFree(device));
    return check_pass("%d rounds of copies in %d streams", ROUNDS, STREAMS);
}
