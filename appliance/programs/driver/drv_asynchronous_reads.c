/*
 * Long asynchronous copies from the device to pinned memory, `--size MiB` each, in several threads at the same time.
 * However the program learns of a copy's end, the bytes are there. A copy whose stream waits for the program holds up
 * nothing else. The program may free the memory, fork, and exit without waiting.
 */
#include "check_driver.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define THREADS 3
#define ROUNDS 2
#define HAS_STREAM_MEMORY ((CUdevice_attribute) 122)

#ifndef HAWSER_NVIDIA_HEADER
#define CU_STREAM_WAIT_VALUE_EQ 1
#define cuStreamWaitValue32 cuStreamWaitValue32_v2
#define cuStreamWriteValue32 cuStreamWriteValue32_v2
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags);
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, unsigned int value, unsigned int flags);
#endif

typedef enum ending { STREAM_WAIT, EVENT_WAIT, STREAM_QUERY, EVENT_QUERY, HOST_FUNCTION, ENDINGS } ending_t;

static const char *const names[ENDINGS] = {"cuStreamSynchronize", "cuEventSynchronize", "cuStreamQuery", "cuEventQuery",
                                           "a host function"};

static CUcontext context;
static size_t bytes;

typedef struct reader {
    pthread_t thread;
    int number;
    CUstream stream;
    CUevent event;
    CUdeviceptr device;
    uint64_t *pinned;
    atomic_int called;
} reader_t;

static uint64_t word(size_t i, int seed) {
    return (i + 1) * 0x9E3779B97F4A7C15ULL + (uint64_t) seed * 0x100000001B3ULL;
}

static void fill(CUdeviceptr device, int seed) {
    uint64_t *source = check_memory(bytes);
    for (size_t i = 0; i < bytes / 8; i++) {
        source[i] = word(i, seed);
    }
    CU_OK(cuMemcpyHtoD(device, source, bytes));
    free(source);
}

static void check_words(const char *what, const uint64_t *words, int seed) {
    for (size_t i = 0; i < bytes / 8; i++) {
        if (words[i] != word(i, seed)) {
            check_fail("after %s, word %zu of %zu, expected %llx, got %llx", what, i, bytes / 8,
                       (unsigned long long) word(i, seed), (unsigned long long) words[i]);
        }
    }
}

/* Looks at both ends only: the function should be short. */
static void note_call(void *argument) {
    reader_t *reader = argument;
    const size_t last = bytes / 8 - 1;
    const int is_right =
        reader->pinned[0] == word(0, reader->number) && reader->pinned[last] == word(last, reader->number);
    atomic_store(&reader->called, is_right ? 1 : -1);
}

static void await_end(reader_t *reader, ending_t ending) {
    CUresult result = CUDA_SUCCESS;
    switch (ending) {
        case STREAM_WAIT:
            CU_OK(cuStreamSynchronize(reader->stream));
            break;
        case EVENT_WAIT:
            CU_OK(cuEventSynchronize(reader->event));
            break;
        case HOST_FUNCTION:
            while (atomic_load(&reader->called) == 0) {
                usleep(100);
            }
            check_equal("the bytes are there for a host function", 1, atomic_load(&reader->called));
            break;
        default:
            do {
                result = ending == STREAM_QUERY ? cuStreamQuery(reader->stream) : cuEventQuery(reader->event);
            } while (result == CUDA_ERROR_NOT_READY);
            CU_OK(result);
    }
}

static void *read_again_and_again(void *argument) {
    reader_t *reader = argument;
    CU_OK(cuCtxSetCurrent(context));
    fill(reader->device, reader->number);
    for (int i = 0; i < ROUNDS * ENDINGS; i++) {
        const ending_t ending = (ending_t) ((i + reader->number) % ENDINGS);
        memset(reader->pinned, 0, bytes);
        atomic_store(&reader->called, 0);
        CU_OK(cuMemcpyDtoHAsync(reader->pinned, reader->device, bytes, reader->stream));
        CU_OK(cuEventRecord(reader->event, reader->stream));
        if (ending == HOST_FUNCTION) {
            CU_OK(cuLaunchHostFunc(reader->stream, note_call, reader));
        }
        await_end(reader, ending);
        check_words(names[ending], reader->pinned, reader->number);
    }
    return NULL;
}

static atomic_int may_go_on;

static void wait_in_stream(void *unused) {
    (void) unused;
    while (!atomic_load(&may_go_on)) {
        usleep(100);
    }
}

/* A stream waits for what the program does after its copies in other streams: by a host function, or for a value. */
static void wait_for_the_program(const reader_t *waiting, const reader_t *other, int by_value) {
    const uint32_t zero = 0;
    CUdeviceptr flag = check_device(&zero, sizeof zero);
    memset(waiting->pinned, 0, bytes);
    atomic_store(&may_go_on, 0);
    if (by_value) {
        CU_OK(cuStreamWaitValue32(waiting->stream, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
    } else {
        CU_OK(cuLaunchHostFunc(waiting->stream, wait_in_stream, NULL));
    }
    CU_OK(cuMemcpyDtoHAsync(waiting->pinned, waiting->device, bytes, waiting->stream));
    for (int i = 0; i < 2; i++) {
        memset(other->pinned, 0, bytes);
        CU_OK(cuMemcpyDtoHAsync(other->pinned, other->device, bytes, other->stream));
        CU_OK(cuStreamSynchronize(other->stream));
        check_words("a copy beside one that waits", other->pinned, other->number);
    }
    CU_IS(CUDA_ERROR_NOT_READY, cuStreamQuery(waiting->stream));
    atomic_store(&may_go_on, 1);
    if (by_value) {
        CU_OK(cuStreamWriteValue32(other->stream, flag, 1, 0));
    }
    CU_OK(cuStreamSynchronize(waiting->stream));
    check_words("a copy that waited", waiting->pinned, waiting->number);
    CU_OK(cuMemFree(flag));
}

/* Rows with gaps between them. */
static void read_rows(const reader_t *reader) {
    enum { ROW = 5000, PITCH = 5120 };
    const size_t rows = bytes / PITCH;
    const CUDA_MEMCPY2D copy = {
        .srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = reader->device,
        .srcPitch = ROW,
        .dstMemoryType = CU_MEMORYTYPE_HOST,
        .dstHost = reader->pinned,
        .dstPitch = PITCH,
        .WidthInBytes = ROW,
        .Height = rows,
    };
    memset(reader->pinned, 0xee, bytes);
    CU_OK(cuMemcpy2DAsync(&copy, reader->stream));
    CU_OK(cuStreamSynchronize(reader->stream));
    for (size_t i = 0; i < rows * PITCH / 8; i++) {
        const size_t row = i * 8 / PITCH, column = i * 8 % PITCH;
        const uint64_t expected = column < ROW ? word((row * ROW + column) / 8, reader->number) : 0xeeeeeeeeeeeeeeeeULL;
        if (reader->pinned[i] != expected) {
            check_fail("row %zu, byte %zu, expected %llx, got %llx", row, column, (unsigned long long) expected,
                       (unsigned long long) reader->pinned[i]);
        }
    }
}

/* The calls that free memory wait for its copies. */
static void free_under_way(const reader_t *reader) {
    uint64_t *target;
    CU_OK(cuMemAllocHost_v2((void **) &target, bytes));
    CU_OK(cuMemcpyDtoHAsync(target, reader->device, bytes, reader->stream));
    CU_OK(cuMemFreeHost(target));
    CU_OK(cuStreamSynchronize(reader->stream));
}

/* The end of a forked child leaves its parent's copies alone. */
static void fork_under_way(const reader_t *reader) {
    memset(reader->pinned, 0, bytes);
    CU_OK(cuMemcpyDtoHAsync(reader->pinned, reader->device, bytes, reader->stream));
    const pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    int status = -1;
    check_true("the child ends", child > 0 && waitpid(child, &status, 0) == child);
    check_equal("exit of the child", 0, status);
    CU_OK(cuStreamSynchronize(reader->stream));
    check_words("a fork", reader->pinned, reader->number);
}

int main(int argc, char **argv) {
    static reader_t readers[THREADS];
    check_begin(argc, argv);
    context = check_context();
    bytes = (size_t) check_option("--size", 24) << 20;
    for (int i = 0; i < THREADS; i++) {
        readers[i].number = i;
        CU_OK(cuStreamCreate(&readers[i].stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cuEventCreate(&readers[i].event, CU_EVENT_DISABLE_TIMING));
        readers[i].device = check_device(NULL, bytes);
        CU_OK(cuMemAllocHost_v2((void **) &readers[i].pinned, bytes));
    }
    for (int i = 0; i < THREADS; i++) {
        check_equal("a thread", 0, pthread_create(&readers[i].thread, NULL, read_again_and_again, &readers[i]));
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(readers[i].thread, NULL);
    }
    wait_for_the_program(&readers[0], &readers[1], 0);
    int has_values = 0;
    CU_OK(cuDeviceGetAttribute(&has_values, HAS_STREAM_MEMORY, 0));
    if (has_values) {
        wait_for_the_program(&readers[1], &readers[2], 1);
    } else {
        check_here("the device has no stream memory operations (attribute 122)");
    }
    read_rows(&readers[2]);
    free_under_way(&readers[0]);
    fork_under_way(&readers[1]);
    for (int i = 0; i < THREADS; i++) { /* the program exits meanwhile */
        CU_OK(cuMemcpyDtoHAsync(readers[i].pinned, readers[i].device, bytes, readers[i].stream));
    }
    return check_pass("%d threads, copies of %zu MiB", THREADS, bytes >> 20);
}
