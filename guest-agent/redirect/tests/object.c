/* A shared object with a static runtime, whose constructor registers code as nvcc's does. */
#include "theirs.h"

static int registered_by;

__attribute__((constructor)) static void register_code(void) {
    registered_by = __cudaRegisterFatBinary();
}

/* The numbers of the runtimes that executed the registration and this call. */
int object_runtimes(void);

int object_runtimes(void) {
    return 100 * registered_by + cudaMalloc();
}
