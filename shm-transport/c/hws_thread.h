/* Threads of the library, of which the program around it knows nothing. */
#ifndef HWS_THREAD_H
#define HWS_THREAD_H

#include <pthread.h>

/*
 * Starts a thread with every signal blocked, because signals belong to the program's threads. Its own faults are not
 * blocked: a host function runs on such a thread, and may touch managed memory. The name has at most 15 bytes. Returns 0
 * or an errno.
 */
int hws_thread_start(pthread_t *thread_p, void *(*main)(void *), void *argument, const char *name);

#endif
