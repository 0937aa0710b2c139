/* Names and texts of CUDA's results. */
#include "hws_driver.h"
#include "hws_hint.h"

typedef struct hws_result {
    int value;
    const char *name;
    const char *text;
} hws_result_t;

#define HWS_RESULT(name, value, text) {value, #name, text},
static const hws_result_t results[] = {
#include "hws_cuda_results.inc"
};
#undef HWS_RESULT

static const hws_result_t *find(CUresult error) {
    size_t low = 0, high = sizeof results / sizeof *results;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (results[middle].value < (int) error) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < sizeof results / sizeof *results && results[low].value == (int) error ? &results[low] : NULL;
}

HWS_EXPORT CUresult cuGetErrorName(CUresult error, const char **pStr) {
    HWS_REQUIRE(pStr != NULL);
    const hws_result_t *found = find(error);
    *pStr = found != NULL ? found->name : NULL;
    return found != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

HWS_EXPORT CUresult cuGetErrorString(CUresult error, const char **pStr) {
    HWS_REQUIRE(pStr != NULL);
    const hws_result_t *found = find(error);
    const char *longer = found != NULL && error == CUDA_ERROR_ILLEGAL_ADDRESS ? hws_hint_text(found->text) : NULL;
    *pStr = longer != NULL ? longer : found != NULL ? found->text : NULL;
    return found != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
