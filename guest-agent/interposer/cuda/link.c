/*
 * The linker of device code. The guest keeps the inputs and sends them when the link is completed, which then reports
 * an error of an input. The linked image comes back and lives until the link is destroyed. A device without a linker
 * receives a single image unchanged.
 */
#include "module.h"

#include "hws_channel.h"
#include "hws_cuda_calls.h"
#include "hws_image.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INLINE_BYTES 65536u /* link.yaml, hwsLinkAdd: larger inputs are staged */
#define READ_BYTES 524288u  /* link.yaml, hwsLinkRead */
#define LOG_CAPACITY 16384u
#define MAX_OPTIONS 64u
#define MAX_NAME_BYTES 4095u
#define MAX_LINKED_BYTES (512ull << 20) /* limits the memory that a worker can make us allocate */

/* The wire form. */
typedef struct hws_link_option {
    uint32_t option, zero;
    uint64_t value;
} hws_link_option_t;

typedef struct hws_link_options {
    hws_link_option_t list[MAX_OPTIONS];
    uint32_t count;
} hws_link_options_t;

typedef struct hws_link_input {
    struct hws_link_input *next;
    CUjitInputType type;
    uint64_t bytes;
    void *data;
    char *name;
    hws_link_options_t options;
} hws_link_input_t;

typedef struct hws_link {
    hws_jit_options_t jit; /* the program's buffers for logs */
    hws_link_options_t options;
    hws_link_input_t *first, **last_p;
    unsigned inputs;
    void *image; /* owned; NULL before the link is complete */
    uint64_t bytes;
} hws_link_t;

static void free_inputs(hws_link_t *link) {
    while (link->first != NULL) {
        hws_link_input_t *input = link->first;
        link->first = input->next;
        free(input->data);
        free(input->name);
        free(input);
    }
    link->last_p = &link->first;
}

static hws_link_t *link_get(CUlinkState state) {
    return hws_handle_data(HWS_KIND_LINK_STATE, (uint64_t) (uintptr_t) state);
}

/* Whether an option's value is a number. */
static bool is_number(CUjit_option option) {
    switch (option) {
        case CU_JIT_MAX_REGISTERS:
        case CU_JIT_THREADS_PER_BLOCK:
        case CU_JIT_OPTIMIZATION_LEVEL:
        case CU_JIT_TARGET_FROM_CUCONTEXT:
        case CU_JIT_TARGET:
        case CU_JIT_FALLBACK_STRATEGY:
        case CU_JIT_GENERATE_DEBUG_INFO:
        case CU_JIT_LOG_VERBOSE:
        case CU_JIT_GENERATE_LINE_INFO:
        case CU_JIT_CACHE_MODE:
        case CU_JIT_LTO:
        case CU_JIT_FTZ:
        case CU_JIT_PREC_DIV:
        case CU_JIT_PREC_SQRT:
        case CU_JIT_FMA:
        case CU_JIT_POSITION_INDEPENDENT_CODE:
        case CU_JIT_MIN_CTA_PER_SM:
        case CU_JIT_MAX_THREADS_PER_BLOCK:
        case CU_JIT_OVERRIDE_DIRECTIVE_VALUES:
        case CU_JIT_SPLIT_COMPILE:
            return true;
        default:
            return false;
    }
}

/* Copies the options for the worker. hws_jit_options_parse() has checked that the arrays are present. */
static CUresult take_options(unsigned count, const CUjit_option *options, void **values, hws_link_options_t *taken_p) {
    static _Atomic bool logged;
    taken_p->count = 0;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CU_JIT_GLOBAL_SYMBOL_NAMES || options[i] == CU_JIT_REFERENCED_KERNEL_NAMES
            || options[i] == CU_JIT_REFERENCED_VARIABLE_NAMES) {
            return hws_unsupported_use(&logged, "a list of symbols for the linker of device code");
        }
        if (is_number(options[i])) {
            HWS_REQUIRE(taken_p->count < MAX_OPTIONS);
            taken_p->list[taken_p->count++] =
                (hws_link_option_t) {.option = options[i], .value = (uint64_t) (uintptr_t) values[i]};
        }
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues,
                                    CUlinkState *stateOut) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(stateOut != NULL);
    hws_link_t *link = calloc(1, sizeof *link);
    if (link == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    link->last_p = &link->first;
    CUresult result = hws_jit_options_parse(numOptions, options, optionValues, &link->jit);
    result = result != CUDA_SUCCESS ? result : take_options(numOptions, options, optionValues, &link->options);
    uint64_t handle = result != CUDA_SUCCESS ? 0 : hws_handle_new(HWS_KIND_LINK_STATE);
    if (handle == 0) {
        free(link);
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
    }
    hws_handle_attach(HWS_KIND_LINK_STATE, handle, link);
    *stateOut = (CUlinkState) (uintptr_t) handle;
    return CUDA_SUCCESS;
}

static bool begins(const char *data, uint64_t available, const char *magic) {
    return available >= strlen(magic) && memcmp(data, magic, strlen(magic)) == 0;
}

/* Checks the data as far as no linker is needed. *bytes_p receives its effective length; a NUL follows the data. */
static CUresult check_data(CUjitInputType type, const char *data, uint64_t available, uint64_t *bytes_p) {
    switch (type) {
        case CU_JIT_INPUT_PTX:
            *bytes_p = strlen(data);
            return *bytes_p != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
        case CU_JIT_INPUT_CUBIN:
            if (!begins(data, available, "\177ELF")) {
                return CUDA_ERROR_INVALID_IMAGE;
            }
            /* falls through */
        case CU_JIT_INPUT_FATBINARY:
            return hws_image_size(data, available + 1, bytes_p) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
        case CU_JIT_INPUT_OBJECT:
            *bytes_p = available;
            return begins(data, available, "\177ELF") ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
        case CU_JIT_INPUT_LIBRARY:
            *bytes_p = available;
            return begins(data, available, "!<arch>\n") ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
        case CU_JIT_INPUT_NVVM:
            return CUDA_ERROR_JIT_COMPILER_NOT_FOUND; /* driver 580 */
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Takes the data, which has a NUL after its `available` bytes. */
static CUresult add(CUlinkState state, CUjitInputType type, char *data, uint64_t available, const char *name,
                    unsigned count, const CUjit_option *options, void **values) {
    hws_link_t *link = link_get(state);
    hws_jit_options_t jit;
    hws_link_input_t *input = calloc(1, sizeof *input);
    CUresult result = link == NULL ? CUDA_ERROR_INVALID_HANDLE
        : link->image != NULL      ? CUDA_ERROR_INVALID_VALUE
        : input == NULL            ? CUDA_ERROR_OUT_OF_MEMORY
                                   : hws_jit_options_parse(count, options, values, &jit);
    result = result != CUDA_SUCCESS ? result : take_options(count, options, values, &input->options);
    result = result != CUDA_SUCCESS ? result : check_data(type, data, available, &input->bytes);
    if (result == CUDA_SUCCESS) {
        input->name = strndup(name == NULL ? "" : name, MAX_NAME_BYTES);
        result = input->name == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    }
    if (result != CUDA_SUCCESS) {
        free(input);
        free(data);
        return result;
    }
    input->type = type;
    input->data = data;
    *link->last_p = input;
    link->last_p = &input->next;
    link->inputs++;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                                     unsigned int numOptions, CUjit_option *options, void **optionValues) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(data != NULL && size != 0 && size < HWS_MAX_IMAGE_BYTES);
    char *copy = malloc(size + 1);
    if (copy == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(copy, data, size);
    copy[size] = '\0'; /* PTX with a length need not end with one */
    return add(state, type, copy, size, name, numOptions, options, optionValues);
}

HWS_EXPORT CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions,
                                     CUjit_option *options, void **optionValues) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(path != NULL && *path != '\0');
    const hws_link_t *link = link_get(state);
    HWS_REQUIRE(link == NULL || link->image == NULL); /* CUDA: nothing is added to a complete link */
    void *data;
    uint64_t bytes;
    HWS_TRY(hws_file_read(path, &data, &bytes));
    return add(state, type, data, bytes, path, numOptions, options, optionValues);
}

/* Sends one input to the worker. */
static CUresult send_input(uint64_t id, const hws_link_input_t *input) {
    uint64_t blob_id = 0;
    bool fits = input->bytes <= INLINE_BYTES;
    if (!fits) {
        HWS_TRY(hws_stage(input->data, input->bytes, &blob_id));
    }
    return hws_call_hwsLinkAdd(id, blob_id, input->type, input->name,
                               input->options.count * (uint32_t) sizeof *input->options.list, input->options.list,
                               fits ? (uint32_t) input->bytes : 0, fits ? input->data : NULL);
}

/* Fetches the linked image from the worker. */
static CUresult receive_image(uint64_t id, uint64_t bytes, hws_link_t *link) {
    if (bytes == 0 || bytes > MAX_LINKED_BYTES) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    char *image = malloc(bytes + 1);
    if (image == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (uint64_t at = 0; at < bytes;) {
        uint32_t wanted = bytes - at < READ_BYTES ? (uint32_t) (bytes - at) : READ_BYTES, got = 0;
        CUresult result = hws_call_hwsLinkRead(id, at, wanted, image + at, &got);
        if (result != CUDA_SUCCESS || got == 0 || got > wanted) {
            free(image);
            return result != CUDA_SUCCESS ? result : CUDA_ERROR_UNKNOWN;
        }
        at += got;
    }
    image[bytes] = '\0';
    link->image = image;
    link->bytes = bytes;
    return CUDA_SUCCESS;
}

/* Links at the worker, and ends the worker's part of the link in any case. */
static CUresult link_there(uint64_t id, hws_link_t *link) {
    CUresult result = CUDA_SUCCESS;
    bool begun = false;
    for (const hws_link_input_t *input = link->first; input != NULL && result == CUDA_SUCCESS; input = input->next) {
        result = send_input(id, input);
        begun = begun || result == CUDA_SUCCESS;
    }
    char *log = malloc(LOG_CAPACITY);
    uint32_t verdict = 0, log_bytes = 0;
    uint64_t bytes = 0;
    if (result == CUDA_SUCCESS && log == NULL) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS) {
        result = hws_call_hwsLinkComplete(id, link->options.count * (uint32_t) sizeof *link->options.list,
                                          link->options.list, LOG_CAPACITY - 1, &verdict, &bytes, log, &log_bytes);
    }
    if (result == CUDA_SUCCESS) {
        log[log_bytes < LOG_CAPACITY ? log_bytes : LOG_CAPACITY - 1] = '\0';
        hws_jit_log(&link->jit, log, verdict != 0);
        result = (CUresult) verdict;
    }
    if (result == CUDA_SUCCESS) {
        result = receive_image(id, bytes, link);
    }
    if (begun) {
        hws_call_hwsLinkEnd(id);
    }
    free(log);
    return result;
}

HWS_EXPORT CUresult cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(cubinOut != NULL);
    hws_link_t *link = link_get(state);
    if (link == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (link->image == NULL && link->inputs == 0) { /* CUDA links nothing to an empty image */
        static const char nothing[] = ".version 7.0\n.target sm_75\n.address_size 64\n";
        HWS_TRY(cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, (void *) (uintptr_t) nothing, sizeof nothing, NULL, 0, NULL,
                                 NULL));
    }
    if (link->image == NULL) {
        static _Atomic bool logged;
        CUresult result = link_there((uint64_t) (uintptr_t) state, link);
        if (result == CUDA_ERROR_NOT_SUPPORTED) {
            if (link->inputs != 1 || link->first->type > CU_JIT_INPUT_FATBINARY) {
                return hws_unsupported_use(&logged, "linking such device images on this device");
            }
            link->image = link->first->data;
            link->bytes = link->first->bytes + (link->first->type == CU_JIT_INPUT_PTX);
            link->first->data = NULL;
            result = CUDA_SUCCESS;
        }
        HWS_TRY(result);
        free_inputs(link);
    }
    *cubinOut = link->image; /* lives until cuLinkDestroy, as CUDA documents */
    if (sizeOut != NULL) {
        *sizeOut = link->bytes;
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuLinkDestroy(CUlinkState state) {
    HWS_ENTER_LOCAL();
    hws_link_t *link = link_get(state);
    if (link == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    free_inputs(link);
    free(link->image);
    link->image = NULL;
    hws_handle_drop(HWS_KIND_LINK_STATE, (uint64_t) (uintptr_t) state);
    return CUDA_SUCCESS;
}
