/* A libcuda.so.1 without a device that writes down what it is called with. Tests only. */
#ifndef HWS_FAKE_CUDA_H
#define HWS_FAKE_CUDA_H

#include <stdint.h>

/* What one call was: the function, and the arguments that matter to tests. */
typedef struct {
    const char *name;
    uint64_t a, b, c;
} fake_call_t;

/* Forgets the calls and failures so far. */
void fake_clear(void);

/* The calls since fake_clear(); look-ups of the current context are not counted, as they never travel. */
int fake_count(void);
const fake_call_t *fake_call(int index);

/* How often a function was called since fake_clear(). */
int fake_calls_of(const char *name);

/* Lets a function fail with a CUresult until fake_clear(). */
void fake_fail(const char *name, int result);

/* Notes a call; the result that the test wants of it. */
int fake_record(const char *name, uint64_t a, uint64_t b, uint64_t c);

#endif
