/*
 * The linker of device code. One input is what the program gets back, to load it; linking several needs a linker
 * beside the device, which is not there yet.
 */
#include "module.h"

#include "hws_image.h"

#include <stdlib.h>
#include <string.h>

typedef struct hws_link {
    void *image; /* owned; NULL before the first input */
    uint64_t bytes;
} hws_link_t;

static void free_image(hws_link_t *link) {
    free(link->image);
    link->image = NULL;
}

static hws_link_t *link_get(CUlinkState state) {
    return hws_handle_data(HWS_KIND_LINK_STATE, (uint64_t) (uintptr_t) state);
}

HWS_EXPORT CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues,
                                    CUlinkState *stateOut) {
    HWS_ENTER_CONTEXT();
    hws_jit_options_t jit;
    HWS_REQUIRE(stateOut != NULL);
    HWS_TRY(hws_jit_options_parse(numOptions, options, optionValues, &jit));
    hws_link_t *link = calloc(1, sizeof *link);
    uint64_t handle = link == NULL ? 0 : hws_handle_new(HWS_KIND_LINK_STATE);
    if (handle == 0) {
        free(link);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    hws_handle_attach(HWS_KIND_LINK_STATE, handle, link);
    *stateOut = (CUlinkState) (uintptr_t) handle;
    return CUDA_SUCCESS;
}

static CUresult add(CUlinkState state, void *image, uint64_t bytes) {
    static _Atomic bool said;
    hws_link_t *link = link_get(state);
    if (link == NULL || link->image != NULL) {
        free(image);
        return link == NULL ? CUDA_ERROR_INVALID_HANDLE : hws_unsupported_use(&said, "linking several device images");
    }
    link->image = image;
    link->bytes = bytes;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                                     unsigned int numOptions, CUjit_option *options, void **optionValues) {
    (void) name;
    HWS_ENTER_CONTEXT();
    hws_jit_options_t jit;
    HWS_REQUIRE(data != NULL && size != 0 && size < HWS_MAX_IMAGE_BYTES);
    HWS_TRY(hws_jit_options_parse(numOptions, options, optionValues, &jit));
    if (type != CU_JIT_INPUT_CUBIN && type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    char *copy = malloc(size + 1);
    if (copy == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(copy, data, size);
    copy[size] = '\0'; /* PTX with a length need not end with one */
    uint64_t bytes;
    if (!hws_image_size(copy, size + 1, &bytes)) {
        free(copy);
        return type == CU_JIT_INPUT_PTX ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_INVALID_IMAGE;
    }
    return add(state, copy, bytes);
}

HWS_EXPORT CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions,
                                     CUjit_option *options, void **optionValues) {
    HWS_ENTER_CONTEXT();
    hws_jit_options_t jit;
    HWS_REQUIRE(path != NULL);
    HWS_TRY(hws_jit_options_parse(numOptions, options, optionValues, &jit));
    if (type != CU_JIT_INPUT_CUBIN && type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    void *image;
    uint64_t bytes;
    HWS_TRY(hws_image_read_file(path, &image, &bytes));
    return add(state, image, bytes);
}

HWS_EXPORT CUresult cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(cubinOut != NULL);
    hws_link_t *link = link_get(state);
    if (link == NULL || link->image == NULL) {
        return link == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    }
    *cubinOut = link->image; /* lives until cuLinkDestroy, as CUDA documents */
    if (sizeOut != NULL) {
        *sizeOut = link->bytes;
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuLinkDestroy(CUlinkState state) {
    HWS_ENTER_CONTEXT();
    hws_link_t *link = link_get(state);
    if (link == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    free_image(link);
    hws_handle_drop(HWS_KIND_LINK_STATE, (uint64_t) (uintptr_t) state);
    return CUDA_SUCCESS;
}
