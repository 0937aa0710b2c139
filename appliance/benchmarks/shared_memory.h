/*
 * The limits of shared memory alone, as a reference for the shm carrier. Ends the program with FAIL when the system
 * refuses something. One thread at a time.
 */
#ifndef HAWSER_BENCHMARKS_SHARED_MEMORY_H
#define HAWSER_BENCHMARKS_SHARED_MEMORY_H

#include <stddef.h>

/*
 * The median time in seconds of a round trip between two spinning threads. They hand a counter to each other in shared
 * memory, each in a cache line of its own.
 */
double shared_memory_ping_pong(int rounds);

/* Copies with the number of threads from shared_memory_threads() and returns the seconds that it took. */
double shared_memory_copy(void *target, const void *source, size_t bytes);

/*
 * The number of threads for copies of a size: the processors that this process may use, at most 4. A short copy has one
 * thread, because waking others takes longer than copying.
 */
int shared_memory_threads(size_t bytes);

#endif
