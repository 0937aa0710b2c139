/* A host function waits for another thread. More launches follow it than any queue holds, and another thread makes
 * calls that may wait for the whole device. All of it must end, in order. */
#include "check_driver.h"

#include <pthread.h>
#include <stdatomic.h>

#define ROUNDS 4
#define LAUNCHES 1500 /* behind each host function */
#define ENOUGH 100    /* launches that any driver takes without waiting */

static CUcontext context;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int gate_open, launched, other_begins;
static int *seen;
static int seen_at_end;

static void set(int *what, int value) {
    pthread_mutex_lock(&lock);
    *what = value;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_until(const int *what, int value) {
    pthread_mutex_lock(&lock);
    while (*what < value) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static void wait_at_gate(void *data) {
    (void) data;
    wait_until(&gate_open, 1);
}

static void note_end(void *data) {
    (void) data;
    seen_at_end = *seen;
}

/* Opens the gate when launches wait behind the host function and the other thread is making its calls. This thread
 * makes no call of CUDA, so that no call of the others can block it. */
static void *open_gate(void *data) {
    (void) data;
    wait_until(&launched, ENOUGH);
    wait_until(&other_begins, 1);
    usleep(5000); /* makes it likely that the calls meet the closed gate; the test is right in either case */
    set(&gate_open, 1);
    return NULL;
}

/* Calls that may wait for the device, and so for the host function. */
static void *other_calls(void *data) {
    CUdeviceptr first = *(CUdeviceptr *) data;
    CU_OK(cuCtxSetCurrent(context));
    wait_until(&launched, ENOUGH);
    set(&other_begins, 1);
    CU_OK(cuMemFree(first));
    CUdeviceptr second = check_device(NULL, 1 << 20);
    CUmodule module = check_module("kernels.ptx");
    void *pinned;
    CU_OK(cuMemHostAlloc(&pinned, 1 << 16, 0));
    CUstream stream;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    int *from = pinned, *to = from + 1024;
    for (int i = 0; i < 1024; i++) {
        from[i] = i;
        to[i] = 0;
    }
    CU_OK(cuMemcpyHtoDAsync(second, from, 4096, stream));
    CU_OK(cuMemcpyDtoHAsync(to, second, 4096, stream));
    CU_OK(cuStreamSynchronize(stream));
    for (int i = 0; i < 1024; i++) {
        check_element("what the other thread copied", i, i, to[i]);
    }
    CU_OK(cuStreamDestroy(stream));
    CU_OK(cuMemFreeHost(pinned));
    CU_OK(cuModuleUnload(module));
    CU_OK(cuMemFree(second));
    return NULL;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    context = check_context();
    CUmodule module = check_module("kernels.ptx");
    CUfunction add = check_function(module, "add_value");
    CUstream stream;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU_OK(cuMemHostAlloc((void **) &seen, 4, 0));
    CUdeviceptr value = check_device(NULL, 4);
    CU_OK(cuMemsetD32(value, 0, 1)); /* one word, of 0 */
    int one = 1;
    CHECK_LAUNCH(add, 1, 1, 0, stream, &value, &one, &one); /* loads the kernel before a stream waits */
    CU_OK(cuCtxSynchronize());
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t opener, other;
        CUdeviceptr freed = check_device(NULL, 1 << 20);
        set(&gate_open, 0);
        set(&launched, 0);
        set(&other_begins, 0);
        CU_OK(cuLaunchHostFunc(stream, wait_at_gate, NULL));
        check_equal("pthread_create", 0, pthread_create(&opener, NULL, open_gate, NULL));
        check_equal("pthread_create", 0, pthread_create(&other, NULL, other_calls, &freed));
        for (int i = 1; i <= LAUNCHES; i++) {
            CHECK_LAUNCH(add, 1, 1, 0, stream, &value, &one, &one);
            if (i == ENOUGH) {
                set(&launched, i);
            }
        }
        CU_OK(cuMemcpyDtoHAsync(seen, value, 4, stream));
        CU_OK(cuLaunchHostFunc(stream, note_end, NULL));
        CU_OK(cuStreamSynchronize(stream));
        check_equal("launches done", 1 + (round + 1) * LAUNCHES, *seen);
        check_equal("what the last host function saw", *seen, seen_at_end);
        check_equal("pthread_join", 0, pthread_join(opener, NULL));
        check_equal("pthread_join", 0, pthread_join(other, NULL));
    }
    CU_OK(cuStreamDestroy(stream));
    CU_OK(cuMemFreeHost(seen));
    CU_OK(cuMemFree(value));
    return check_pass("%d rounds of %d launches behind a host function", ROUNDS, LAUNCHES);
}
