/* Threads of one process: a current context for each thread, launches in lock order, a blocking wait beside other
 * work. */
#include "check_driver.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 5
#define ROUNDS 16
#define COUNT 3000

static CUcontext context;
static CUfunction add;
static CUstream shared_stream, held_stream;
static CUdeviceptr shared_values;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn, gate_open;
static atomic_int waiter_done;

static void *run(void *data) {
    int number = (int) (intptr_t) data, count = COUNT, one = 1;
    CUcontext current = context;
    CU_OK(cuCtxGetCurrent(&current));
    check_true("a new thread has no current context", current == NULL);
    CUdeviceptr refused;
    CU_IS(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&refused, 4));
    CU_OK(cuCtxSetCurrent(context));
    CUdeviceptr own = check_device(NULL, COUNT * 4);
    CU_OK(cuMemsetD32(own, 0, COUNT));
    CUstream stream;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    for (int round = 0; round < ROUNDS; round++) {
        CHECK_LAUNCH(add, (COUNT + 63) / 64, 64, 0, stream, &own, &count, &number);
        pthread_mutex_lock(&lock);
        while (turn % THREADS != number) {
            pthread_cond_wait(&changed, &lock);
        }
        CHECK_LAUNCH(add, (COUNT + 63) / 64, 64, 0, shared_stream, &shared_values, &count, &one);
        turn++;
        if (round == ROUNDS / 2) {
            int seen = 0;
            CU_OK(cuMemcpyDtoHAsync(&seen, shared_values + 4 * (COUNT - 1), 4, shared_stream));
            CU_OK(cuStreamSynchronize(shared_stream));
            check_equal("what all threads added", turn, seen);
        }
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    CU_OK(cuStreamSynchronize(stream));
    int *host = check_memory(COUNT * 4);
    CU_OK(cuMemcpyDtoH(host, own, COUNT * 4));
    for (int i = 0; i < COUNT; i++) {
        check_element("thread's own", i, ROUNDS * number, host[i]);
    }
    free(host);
    CU_OK(cuStreamDestroy(stream));
    CU_OK(cuMemFree(own));
    return NULL;
}

static void wait_at_gate(void *data) {
    (void) data;
    pthread_mutex_lock(&lock);
    while (!gate_open) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static void *wait_for_stream(void *data) {
    (void) data;
    CU_OK(cuCtxSetCurrent(context));
    CU_OK(cuStreamSynchronize(held_stream));
    atomic_store(&waiter_done, 1);
    return NULL;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    context = check_context();
    CUmodule module = check_module("kernels.ptx");
    add = check_function(module, "add_value");
    CU_OK(cuStreamCreate(&shared_stream, CU_STREAM_NON_BLOCKING));
    shared_values = check_device(NULL, COUNT * 4);
    CU_OK(cuMemsetD32(shared_values, 0, COUNT));
    CU_OK(cuCtxSynchronize());
    pthread_t threads[THREADS], waiter;
    for (int i = 0; i < THREADS; i++) {
        check_equal("pthread_create", 0, pthread_create(&threads[i], NULL, run, (void *) (intptr_t) i));
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }

    /* One thread waits for a stream that a host function blocks; this thread continues to work and then releases the
     * function. */
    CU_OK(cuStreamCreate(&held_stream, CU_STREAM_NON_BLOCKING));
    CU_OK(cuLaunchHostFunc(held_stream, wait_at_gate, NULL));
    check_equal("pthread_create", 0, pthread_create(&waiter, NULL, wait_for_stream, NULL));
    int count = COUNT, hundred = 100, seen = 0;
    for (int round = 0; round < ROUNDS; round++) {
        CHECK_LAUNCH(add, (COUNT + 63) / 64, 64, 0, shared_stream, &shared_values, &count, &hundred);
        CU_OK(cuStreamSynchronize(shared_stream));
    }
    CU_IS(CUDA_ERROR_NOT_READY, cuStreamQuery(held_stream));
    check_equal("the other thread still waits", 0, atomic_load(&waiter_done));
    CU_OK(cuMemcpyDtoHAsync(&seen, shared_values, 4, shared_stream));
    CU_OK(cuStreamSynchronize(shared_stream));
    check_equal("work done meanwhile", THREADS * ROUNDS + 100 * ROUNDS, seen);
    pthread_mutex_lock(&lock);
    gate_open = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(waiter, NULL);
    check_equal("the waiting thread returned", 1, atomic_load(&waiter_done));
    CU_OK(cuStreamDestroy(held_stream));
    CU_OK(cuStreamDestroy(shared_stream));
    CU_OK(cuMemFree(shared_values));
    return check_pass("%d threads, %d launches in lock order, a blocking wait beside work", THREADS, THREADS * ROUNDS);
}
