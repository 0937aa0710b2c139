/* The arguments of kernel nodes, in memory that programs read and write through cuGraphKernelNodeGetParams. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

/* Makes a block of zeros for this number of pointers and packed bytes. */
static hws_arguments_t *make(uint32_t count, size_t bytes) {
    size_t pointers = count * sizeof(void *);
    hws_arguments_t *made = calloc(1, sizeof *made + pointers + 2 * bytes);
    if (made != NULL) {
        made->capacity = count;
        made->packed_capacity = bytes;
        made->packed = (uint8_t *) made->pointers + pointers;
        made->sent = made->packed + bytes;
    }
    return made;
}

hws_arguments_t *hws_arguments_make(const hws_function_t *function) {
    hws_arguments_t *made = make(function->param_count, hws_launch_packed_bytes(function));
    if (made != NULL) {
        hws_arguments_point(made, function);
    }
    return made;
}

void hws_arguments_point(hws_arguments_t *arguments, const hws_function_t *function) {
    for (uint32_t i = 0; i < function->param_count; i++) {
        arguments->pointers[i] = arguments->packed + function->params[i].offset;
    }
}

static uint32_t larger_of(uint32_t needed, uint32_t had) {
    return needed <= had ? had : needed > 2 * had ? needed : 2 * had;
}

bool hws_arguments_replace(hws_arguments_t **kept_p, const uint8_t *packed, const hws_function_t *function) {
    hws_arguments_t *kept = *kept_p;
    size_t bytes = hws_launch_packed_bytes(function);
    if (function->param_count > kept->capacity || bytes > kept->packed_capacity) {
        /* Doubled, so that a node whose function keeps changing has a bounded number of blocks. */
        hws_arguments_t *grown = make(larger_of(function->param_count, kept->capacity),
                                      larger_of((uint32_t) bytes, (uint32_t) kept->packed_capacity));
        if (grown == NULL) {
            return false;
        }
        grown->outgrown = kept;
        grown->shown = kept->shown;
        *kept_p = kept = grown;
    }
    memcpy(kept->packed, packed, bytes);
    hws_arguments_point(kept, function);
    return true;
}

void hws_arguments_free(hws_arguments_t *arguments) {
    while (arguments != NULL) {
        hws_arguments_t *outgrown = arguments->outgrown;
        free(arguments);
        arguments = outgrown;
    }
}
