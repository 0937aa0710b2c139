/* Logs each function and each use that has no implementation, once. */
#include "hws_driver.h"

#include <pthread.h>
#include <string.h>

#define MAX_NAMES 1024

CUresult hws_unsupported(const char *name) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const char *logged[MAX_NAMES]; /* string literals of the stubs, compared by address */
    static int count;
    if (!hws_log_enabled(HWS_WARN)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    pthread_mutex_lock(&lock);
    bool known = count == MAX_NAMES;
    for (int i = 0; i < count && !known; i++) {
        known = logged[i] == name;
    }
    if (!known) {
        logged[count++] = name;
    }
    pthread_mutex_unlock(&lock);
    if (!known) {
        hws_log(HWS_WARN, "%s is not supported", name);
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult hws_unsupported_use(_Atomic bool *logged, const char *what) {
    if (!atomic_exchange(logged, true)) {
        hws_log(HWS_WARN, "%s is not supported", what);
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}
