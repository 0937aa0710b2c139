/*
 * A program with a static runtime. Without arguments it prints which runtimes execute its calls. "arguments" prints the
 * sum that a function with many arguments returns at its first call, "threads" lets several threads make the first
 * call; other arguments are shared objects to open.
 */
#include "theirs.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define THREADS 8
#define ROUNDS 50 /* of opening and closing an object */

static int registered_by;
static pthread_barrier_t barrier;

#ifndef WITHOUT_CONSTRUCTOR
__attribute__((constructor)) static void register_code(void) {
    registered_by = __cudaRegisterFatBinary();
}
#endif

static void *call_first(void *result) {
    pthread_barrier_wait(&barrier);
    *(int *) result = cudaMalloc();
    return NULL;
}

static int call_in_threads(void) {
    pthread_t threads[THREADS];
    int results[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, call_first, &results[i]) != 0) {
            return 1;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        printf("%d ", results[i]);
    }
    printf("\n");
    return 0;
}

static int count_mappings(void) {
    int count = 0, c;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && (c = getc(maps)) != EOF) {
        count += c == '\n';
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return count;
}

static int open_objects(int count, char **paths) {
    int before = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < count; i++) {
            void *object = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
            int (*runtimes)(void) = object == NULL ? NULL : (int (*)(void)) dlsym(object, "object_runtimes");
            if (runtimes == NULL) {
                fprintf(stderr, "%s\n", dlerror());
                return 1;
            }
            int numbers = runtimes();
            if (round == 0) {
                printf("%d ", numbers);
            }
            dlclose(object);
        }
        before = round == 0 ? count_mappings() : before;
    }
    printf("%s\n", count_mappings() <= before ? "and nothing is left" : "and mappings are left");
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "arguments") == 0) {
        printf("%g\n", cudaLaunchKernel(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17));
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "threads") == 0) {
        return call_in_threads();
    }
    printf("%d %d %d %d\n", registered_by, cudaMalloc(), cudaDeviceReset(), __cudaGetProcAddress());
    return argc > 1 ? open_objects(argc - 1, argv + 1) : 0;
}
