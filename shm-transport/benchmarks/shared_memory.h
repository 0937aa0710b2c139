/* What shared memory alone can do: the limits beside which the shm carrier is measured. Ends the program with FAIL when the system
 * refuses something. One thread at a time. */
#ifndef HAWSER_BENCHMARKS_SHARED_MEMORY_H
#define HAWSER_BENCHMARKS_SHARED_MEMORY_H

#include <stddef.h>

/* The median time in seconds of a round trip between two threads that hand a counter to each other in shared memory, each in a cache
 * line of its own, and wait by looking. */
double shared_memory_ping_pong(int rounds);

/* Copies with as many threads as shared_memory_threads() says for so many bytes, and returns the seconds that it took. */
double shared_memory_copy(void *target, const void *source, size_t bytes);

/* How many threads the copies of a size use: the processors that this process may run on, at most 4; one for a short copy, for which
 * waking others takes longer than copying. */
int shared_memory_threads(size_t bytes);

#endif
