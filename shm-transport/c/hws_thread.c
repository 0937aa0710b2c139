#include "hws_thread.h"

#include <signal.h>
#include <stddef.h>

int hws_thread_start(pthread_t *thread_p, void *(*main)(void *), void *argument, const char *name) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(thread_p, NULL, main, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0) {
        pthread_setname_np(*thread_p, name);
    }
    return rc;
}
