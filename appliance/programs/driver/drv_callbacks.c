/* Host functions and callbacks run in stream order and see the results of earlier copies. */
#include "check_driver.h"

#define STEPS 24

static int order[STEPS];
static int done;

struct step {
    int number;
    volatile int *seen;
};

static void host_function(void *data) {
    struct step *step = data;
    if (*step->seen != step->number + 1) {
        check_fail("what host function %d sees, expected %d, got %d", step->number, step->number + 1, *step->seen);
    }
    order[done++] = step->number; /* one stream never runs two functions at the same time */
}

static void callback(CUstream stream, CUresult status, void *data) {
    (void) stream;
    check_equal("status", CUDA_SUCCESS, status);
    host_function(data);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    CUmodule module = check_module("kernels.ptx");
    CUfunction add = check_function(module, "add_value");
    CUstream stream;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    int *seen, one = 1;
    CU_OK(cuMemHostAlloc((void **) &seen, 4, 0));
    CUdeviceptr value = check_device(NULL, 4);
    CU_OK(cuMemsetD32(value, 0, 1));
    CU_OK(cuCtxSynchronize());
    struct step steps[STEPS];
    for (int i = 0; i < STEPS; i++) {
        steps[i] = (struct step) {i, seen};
        CHECK_LAUNCH(add, 1, 1, 0, stream, &value, &one, &one);
        CU_OK(cuMemcpyDtoHAsync(seen, value, 4, stream));
        if (i % 3 == 0) {
            CU_OK(cuStreamAddCallback(stream, callback, &steps[i], 0));
        } else {
            CU_OK(cuLaunchHostFunc(stream, host_function, &steps[i]));
        }
    }
    CU_OK(cuStreamSynchronize(stream));
    check_equal("host functions run", STEPS, done);
    for (int i = 0; i < STEPS; i++) {
        check_element("order", i, i, order[i]);
    }
    CU_OK(cuStreamDestroy(stream));
    CU_OK(cuMemFreeHost(seen));
    CU_OK(cuMemFree(value));
    return check_pass("%d host functions in order", STEPS);
}
