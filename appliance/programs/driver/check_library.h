/* Finds the functions of a math library by their names, so that a program is built without the library's headers. */
#ifndef CHECK_LIBRARY_H
#define CHECK_LIBRARY_H

#include "check_driver.h"

#include <dlfcn.h>

static void *library;

/* Opens the library by its soname, or by that of CUDA 12 (NULL for none). Fails when there is neither. */
static inline void open_library(const char *soname, const char *older) {
    library = dlopen(soname, RTLD_NOW);
    if (library == NULL && older != NULL) {
        library = dlopen(older, RTLD_NOW);
    }
    if (library == NULL) {
        check_fail("%s, expected a library, got %s", soname, dlerror());
    }
}

/* A function of the library. Fails when the library has none of this name. */
static inline void *find(const char *name) {
    void *function = dlsym(library, name);
    if (function == NULL) {
        check_fail("the function %s, expected its address, got none", name);
    }
    return function;
}

/* A variable with the name of a function, and its value. */
#define DECLARE(name, ...) static int (*name)(__VA_ARGS__)
#define FIND(name) *(void **) &name = find(#name)

/* Fails when a call returns another status. Every library's SUCCESS is 0. */
#define IS(expected, call)                                                                                             \
    do {                                                                                                               \
        int got = (call);                                                                                              \
        if (got != (expected)) {                                                                                       \
            check_fail("%s, expected %d, got %d", #call, (expected), got);                                             \
        }                                                                                                              \
    } while (0)
#define OK(call) IS(0, call)

#endif
