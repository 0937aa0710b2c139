/* A libcuda.so.1 without a device that records its calls. Tests only. */
#ifndef HWS_FAKE_CUDA_H
#define HWS_FAKE_CUDA_H

#include <stdint.h>

/* One call: the function, and the arguments that matter to tests. */
typedef struct {
    const char *name;
    uint64_t a, b, c;
} fake_call_t;

/* Clears the recorded calls and the failures. */
void fake_clear(void);

/* The calls since fake_clear(). Look-ups of the current context are not counted, because they never travel. */
int fake_count(void);
const fake_call_t *fake_call(int index);

/* Number of a function's calls since fake_clear(). */
int fake_calls_of(const char *name);

/* Lets a function fail with a CUresult until fake_clear(). */
void fake_fail(const char *name, int result);

/* Memory of the managed variable of all libraries, and which of it the next look-up gives. */
extern int fake_managed[2], fake_managed_at;

/* Records a call and returns the result that the test has set. */
int fake_record(const char *name, uint64_t a, uint64_t b, uint64_t c);

#endif
