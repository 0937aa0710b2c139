/* A small test frame: a check that reports where it failed, and named tests. */
#ifndef HWS_TEST_H
#define HWS_TEST_H

#include <stdio.h>
#include <stdlib.h>

#define HWS_CHECK(condition)                                                                                           \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s: not so: %s\n", __FILE__, __LINE__, __func__, #condition);                      \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define HWS_RUN(test)                                                                                                  \
    do {                                                                                                               \
        fprintf(stderr, "%s\n", #test);                                                                                \
        test();                                                                                                        \
    } while (0)

#endif
