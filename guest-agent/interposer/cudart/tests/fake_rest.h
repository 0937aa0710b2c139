/* A driver's function that only records and succeeds. */
#include "fake_cuda.h"

#define REST(name)                                                                                                     \
    __attribute__((weak, visibility("default"))) int name(void);                                                       \
    __attribute__((weak, visibility("default"))) int name(void) {                                                      \
        return fake_record(#name, 0, 0, 0);                                                                            \
    }
