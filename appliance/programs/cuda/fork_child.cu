// fork: before the first CUDA call the child is an ordinary program. After it, every call of the child returns an
// error, and the parent continues unaffected.
#include "check_cuda.h"

#include <sys/wait.h>
#include <unistd.h>

__global__ void add(int *value, int addend) {
    *value += addend;
}

static int own_work(int addend) {
    int *value = device_array<int>(1);
    CUDA_OK(cudaMemset(value, 0, sizeof(int)));
    add<<<1, 1>>>(value, addend);
    LAUNCH_OK();
    int got = host_copy(value, 1)[0];
    CUDA_OK(cudaFree(value));
    return got;
}

static void await(pid_t child, const char *what) {
    int status = 0;
    check_true("fork", child > 0 && waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        check_fail("%s, expected exit 0, got %s %d", what, WIFEXITED(status) ? "exit" : "signal",
                   WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    pid_t early = fork();
    if (early == 0) {
        check_equal("the early child's work", 7, own_work(7));
        return 0;
    }
    await(early, "child of a program that had not used CUDA");

    int *value = device_array<int>(1);
    CUDA_OK(cudaMemset(value, 0, sizeof(int)));
    add<<<1, 1>>>(value, 1); // still running at the fork
    LAUNCH_OK();
    pid_t late = fork();
    if (late == 0) {
        int *more = nullptr;
        CUDA_IS(cudaErrorInitializationError, cudaMalloc(&more, 4));
        CUDA_IS(cudaErrorInitializationError, cudaDeviceSynchronize());
        // _exit: the parent's exit handlers must run only in the parent.
        _exit(0);
    }
    add<<<1, 1>>>(value, 2);
    LAUNCH_OK();
    await(late, "child of a program that used CUDA");
    pid_t leaving = fork();
    if (leaving == 0) {
        exit(0); // runs all exit handlers, which must not close anything of the parent
    }
    await(leaving, "child that leaves by exit()");
    add<<<1, 1>>>(value, 4);
    LAUNCH_OK();
    check_equal("the parent's work", 7, host_copy(value, 1)[0]);
    CUDA_OK(cudaFree(value));
    return check_pass("children before and after the first call, the parent goes on");
}
