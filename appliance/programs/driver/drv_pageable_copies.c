/*
 * Copies of the program's own memory. Sizes lie around each limit at which Hawser changes the way of transfer;
 * addresses are odd. Copies are of bytes and of boxes, by one thread and by several, and of the same boxes in pinned
 * memory. The program compares every byte, including the bytes beside the copy. `--size MiB` for the largest.
 */
#include "check_driver.h"

#include <pthread.h>

enum { THREADS = 3, MARGIN = 64 };

static CUcontext context;

static uint8_t byte(size_t i, unsigned int seed) {
    return (uint8_t) ((i * 2654435761u + seed) >> 11 ^ i);
}

static void check_bytes(const char *what, const uint8_t *bytes, size_t count, size_t first, unsigned int seed) {
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != byte(first + i, seed)) {
            check_fail("%s, byte %zu of %zu, expected %d, got %d", what, i, count, byte(first + i, seed), bytes[i]);
        }
    }
}

static void check_margin(const char *what, const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        check_element(what, (long long) i, 0xEE, bytes[i]);
    }
}

/* To the device and back, in the given stream or in a stream of its own. */
static void there_and_back(size_t bytes, unsigned int seed, CUstream stream) {
    uint8_t *from = check_memory(bytes + 2 * MARGIN), *to = check_memory(bytes + 2 * MARGIN);
    size_t shift = seed % 16; /* odd addresses on either side */
    CUdeviceptr device = check_device(NULL, bytes + MARGIN);
    for (size_t i = 0; i < bytes; i++) {
        from[shift + i] = byte(i, seed);
    }
    memset(to, 0xEE, bytes + 2 * MARGIN);
    if (stream == NULL) {
        CU_OK(cuMemcpyHtoD(device + 16 - shift, from + shift, bytes));
        memset(from, 0, bytes + MARGIN);
        CU_OK(cuMemcpyDtoH(to + MARGIN, device + 16 - shift, bytes));
    } else {
        CU_OK(cuMemcpyHtoDAsync(device + 16 - shift, from + shift, bytes, stream));
        memset(from, 0, bytes + MARGIN);
        CU_OK(cuMemcpyDtoHAsync(to + MARGIN, device + 16 - shift, bytes, stream));
        CU_OK(cuStreamSynchronize(stream));
    }
    check_margin("before the copy", to, MARGIN);
    check_bytes("there and back", to + MARGIN, bytes, 0, seed);
    check_margin("behind the copy", to + MARGIN + bytes, MARGIN);
    CU_OK(cuMemFree(device));
    free(from);
    free(to);
}

typedef struct box {
    size_t width, height, depth, host_pitch, host_rows, device_pitch, device_rows;
} box_t;

static const box_t boxes[] = {
    {100, 7, 1, 100, 7, 128, 7},
    {100, 300, 1, 131, 300, 512, 300},
    {4096, 500, 1, 4096, 500, 4096, 500},
    {700000, 5, 1, 700001, 5, 700416, 5},
    {1, 30000, 1, 3, 30000, 2, 30000},
    {33, 65, 40, 64, 70, 48, 65},
    {2000, 64, 16, 2000, 64, 2048, 66},
    {90000, 4, 5, 90001, 5, 90112, 4},
    /* Long enough for several connections; the rows of the last one are longer than a piece of a copy. */
    {70001, 101, 1, 70010, 101, 70144, 101},
    {3000, 200, 10, 3001, 210, 3072, 200},
    {700003, 3, 3, 700005, 4, 700416, 3},
};

static CUDA_MEMCPY3D copy_of(const box_t *box, uint8_t *host, CUdeviceptr device, int to_device) {
    CUDA_MEMCPY3D copy;
    memset(&copy, 0, sizeof copy);
    copy.WidthInBytes = box->width;
    copy.Height = box->height;
    copy.Depth = box->depth;
    copy.srcMemoryType = to_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    copy.dstMemoryType = to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    copy.srcHost = host;
    copy.dstHost = host;
    copy.srcDevice = device;
    copy.dstDevice = device;
    copy.srcPitch = to_device ? box->host_pitch : box->device_pitch;
    copy.srcHeight = to_device ? box->host_rows : box->device_rows;
    copy.dstPitch = to_device ? box->device_pitch : box->host_pitch;
    copy.dstHeight = to_device ? box->device_rows : box->host_rows;
    return copy;
}

/* A box to the device and back into other memory, where only the box's bytes may change. */
static void copy_box(const box_t *box, int pinned, CUstream stream) {
    size_t host_bytes = box->host_pitch * box->host_rows * box->depth;
    size_t device_bytes = box->device_pitch * box->device_rows * box->depth;
    uint8_t *from, *to;
    if (pinned) {
        CU_OK(cuMemAllocHost_v2((void **) &from, host_bytes));
        CU_OK(cuMemAllocHost_v2((void **) &to, host_bytes));
    } else {
        from = check_memory(host_bytes);
        to = check_memory(host_bytes);
    }
    CUdeviceptr device = check_device(NULL, device_bytes);
    CU_OK(cuMemsetD8(device, 0xEE, device_bytes));
    for (size_t i = 0; i < host_bytes; i++) {
        from[i] = byte(i, 9);
    }
    memset(to, 0xEE, host_bytes);
    CUDA_MEMCPY3D in = copy_of(box, from, device, 1), out = copy_of(box, to, device, 0);
    CU_OK(cuCtxSynchronize()); /* for the fill: a non-blocking stream does not wait for it */
    if (stream == NULL) {
        CU_OK(cuMemcpy3D(&in));
        CU_OK(cuMemcpy3D(&out));
    } else if (box->depth == 1) {
        CUDA_MEMCPY2D in_2d, out_2d;
        memset(&in_2d, 0, sizeof in_2d);
        in_2d.srcMemoryType = CU_MEMORYTYPE_HOST;
        in_2d.srcHost = from;
        in_2d.srcPitch = box->host_pitch;
        in_2d.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        in_2d.dstDevice = device;
        in_2d.dstPitch = box->device_pitch;
        in_2d.WidthInBytes = box->width;
        in_2d.Height = box->height;
        memset(&out_2d, 0, sizeof out_2d);
        out_2d.srcMemoryType = CU_MEMORYTYPE_DEVICE;
        out_2d.srcDevice = device;
        out_2d.srcPitch = box->device_pitch;
        out_2d.dstMemoryType = CU_MEMORYTYPE_HOST;
        out_2d.dstHost = to;
        out_2d.dstPitch = box->host_pitch;
        out_2d.WidthInBytes = box->width;
        out_2d.Height = box->height;
        CU_OK(cuMemcpy2DAsync(&in_2d, stream));
        CU_OK(cuMemcpy2DAsync(&out_2d, stream));
        CU_OK(cuStreamSynchronize(stream));
    } else {
        CU_OK(cuMemcpy3D(&in));
        CU_OK(cuMemcpy3D(&out));
    }
    for (size_t i = 0; i < host_bytes; i++) {
        size_t slice = i / (box->host_pitch * box->host_rows), row = i / box->host_pitch % box->host_rows;
        int inside = slice < box->depth && row < box->height && i % box->host_pitch < box->width;
        check_element(pinned ? "pinned box" : "pageable box", (long long) i, inside ? byte(i, 9) : 0xEE, to[i]);
    }
    CU_OK(cuMemFree(device));
    if (pinned) {
        CU_OK(cuMemFreeHost(from));
        CU_OK(cuMemFreeHost(to));
    } else {
        free(from);
        free(to);
    }
}

static void *copy_in_thread(void *number) {
    CUstream stream;
    CU_OK(cuCtxSetCurrent(context));
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 6; i++) {
        there_and_back(((size_t) 1 << 20) * (size_t) (i + 1) / 2 + 12345, (unsigned int) (uintptr_t) number, stream);
        copy_box(&boxes[i], 0, stream);
    }
    CU_OK(cuStreamDestroy(stream));
    return NULL;
}

int main(int argc, char **argv) {
    static const size_t sizes[] = {1,     511,   4096,   16383,  16384,  16385,  32767,   32768,   32769,   65535,
                                   65536, 65537, 131071, 262145, 524287, 524289, 1048575, 1048576, 1048577, 3000001};
    check_begin(argc, argv);
    context = check_context();
    CUstream stream;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        there_and_back(sizes[i], (unsigned int) i, NULL);
        there_and_back(sizes[i], (unsigned int) i + 5, stream);
    }
    there_and_back(((size_t) check_option("--size", 40) << 20) + 7, 3, NULL);
    for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++) {
        copy_box(&boxes[i], 0, NULL);
        copy_box(&boxes[i], 0, stream);
        copy_box(&boxes[i], 1, NULL);
        copy_box(&boxes[i], 1, stream);
    }
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        check_equal("a thread", 0, pthread_create(&threads[i], NULL, copy_in_thread, (void *) i));
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CU_OK(cuStreamDestroy(stream));
    return check_pass("%zu sizes, %zu boxes, %d threads", sizeof sizes / sizeof *sizes + 1,
                      sizeof boxes / sizeof *boxes, THREADS);
}
