#include "hws_thread.h"

#include <signal.h>
#include <stddef.h>

int hws_thread_start(pthread_t *thread_p, void *(*main)(void *), void *argument, const char *name) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        sigdelset(&blocked, faults[i]);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    int rc = pthread_create(thread_p, NULL, main, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0) {
        pthread_setname_np(*thread_p, name);
    }
    return rc;
}
