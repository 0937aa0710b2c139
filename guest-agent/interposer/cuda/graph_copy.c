/*
 * Copy nodes. The worker copies memory of devices and of the region. Other memory of the process is read and written
 * when the node is executed, as CUDA promises: a CALLBACK arrives, and the bytes travel on the thread of copies.
 */
#include "array.h"
#include "copy.h"
#include "graph_call.h"
#include "mirror.h"
#include "shadow.h"

#include "hws_cuda_calls.h"

#include <stdlib.h>
#include <string.h>

#define PLACE_DEVICE 0u /* graph_types.yaml, HwsGraphEnd */
#define PLACE_REGION 1u
#define PLACE_GUEST 2u
#define PLACE_ARRAY 3u

/* One end: rows of pitch bytes, slices of height rows, and the box's origin in them. An array has no pitch. */
typedef struct hws_place {
    bool device; /* not the host: device memory, or an array */
    CUarray array;
    uint64_t base, pitch, height, x, y, z;
} hws_place_t;

/* Bytes from the base to a place in the end's memory; false when that does not fit 64 bits. */
static bool offset_of(const hws_place_t *side, uint64_t x, uint64_t y, uint64_t z, uint64_t *offset_p) {
    uint64_t row;
    return !__builtin_mul_overflow(z, side->height, &row) && !__builtin_add_overflow(row, y, &row)
        && !__builtin_mul_overflow(row, side->pitch, offset_p) && !__builtin_add_overflow(*offset_p, x, offset_p);
}

static CUresult side_of(const CUDA_MEMCPY3D *copy, bool source, hws_place_t *side_p) {
    CUmemorytype type = source ? copy->srcMemoryType : copy->dstMemoryType;
    CUdeviceptr device = source ? copy->srcDevice : copy->dstDevice;
    const void *host = source ? copy->srcHost : copy->dstHost;
    *side_p = source ? (hws_place_t) {.pitch = copy->srcPitch,
                                      .height = copy->srcHeight,
                                      .x = copy->srcXInBytes,
                                      .y = copy->srcY,
                                      .z = copy->srcZ}
                     : (hws_place_t) {.pitch = copy->dstPitch,
                                      .height = copy->dstHeight,
                                      .x = copy->dstXInBytes,
                                      .y = copy->dstY,
                                      .z = copy->dstZ};
    switch (type) {
        case CU_MEMORYTYPE_HOST:
            side_p->base = (uint64_t) (uintptr_t) host;
            side_p->device = hws_copy_is_device(side_p->base); /* as CUDA takes it */
            return CUDA_SUCCESS;
        case CU_MEMORYTYPE_DEVICE:
            side_p->base = device;
            side_p->device = true;
            return CUDA_SUCCESS;
        case CU_MEMORYTYPE_UNIFIED:
            side_p->base = device;
            side_p->device = hws_copy_is_device(device);
            return CUDA_SUCCESS;
        case CU_MEMORYTYPE_ARRAY:
            side_p->array = source ? copy->srcArray : copy->dstArray;
            side_p->device = true;
            return hws_array_get(side_p->array) == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Fills in values that CUDA lets a program omit, and finds the first byte and the end of the last one. */
static CUresult extent_of(hws_place_t *side, const CUDA_MEMCPY3D *copy, uint64_t *first_p, uint64_t *last_p) {
    uint64_t row_end, rows_end, slices_end;
    HWS_REQUIRE(side->base != 0 && !__builtin_add_overflow(side->x, copy->WidthInBytes, &row_end)
                && !__builtin_add_overflow(side->y, copy->Height, &rows_end)
                && !__builtin_add_overflow(side->z, copy->Depth, &slices_end));
    if (side->pitch == 0 && rows_end == 1 && slices_end == 1) {
        side->pitch = row_end;
    }
    if (slices_end == 1 && side->height < rows_end) {
        side->height = rows_end;
    }
    HWS_REQUIRE(side->pitch >= row_end && (side->height >= rows_end || copy->Depth == 1));
    if (side->height < rows_end) {
        HWS_REQUIRE(side->z == 0);
        side->height = rows_end;
    }
    HWS_REQUIRE(offset_of(side, side->x, side->y, side->z, first_p)
                && offset_of(side, row_end, rows_end - 1, slices_end - 1, last_p));
    return CUDA_SUCCESS;
}

/* Checks that the box consists of whole elements of the array. */
static CUresult check_array(const hws_place_t *side, const CUDA_MEMCPY3D *copy) {
    HWS_TAKE_ARRAY(array, side->array);
    uint64_t row_end, rows_end, slices_end;
    HWS_REQUIRE(side->x % array->element_bytes == 0 && copy->WidthInBytes % array->element_bytes == 0);
    HWS_REQUIRE(!__builtin_add_overflow(side->x, copy->WidthInBytes, &row_end)
                && !__builtin_add_overflow(side->y, copy->Height, &rows_end)
                && !__builtin_add_overflow(side->z, copy->Depth, &slices_end));
    HWS_REQUIRE(row_end <= hws_array_width_bytes(array) && rows_end <= hws_array_rows(array)
                && slices_end <= hws_array_slices(array));
    return CUDA_SUCCESS;
}

static CUresult check_side(bool source, hws_node_copy_t *kept) {
    const CUDA_MEMCPY3D *copy = &kept->copy;
    hws_place_t side;
    uint64_t first, last;
    HWS_TRY(side_of(copy, source, &side));
    *(source ? &kept->from_device : &kept->to_device) = side.device;
    if (side.array != NULL) {
        return check_array(&side, copy);
    }
    HWS_TRY(extent_of(&side, copy, &first, &last));
    if (side.device) {
        return hws_copy_check_device(side.base + first, last - first);
    }
    const void *memory = (const void *) (uintptr_t) (side.base + first);
    kept->shared = hws_copy_host(memory, last - first, &kept->region_offset) == HWS_HOST_SHARED;
    return CUDA_SUCCESS;
}

CUresult hws_params_copy(const CUDA_MEMCPY3D *from, CUcontext context, hws_params_t *params_p) {
    HWS_REQUIRE(from != NULL && from->WidthInBytes != 0 && from->Height != 0 && from->Depth != 0 && from->srcLOD == 0
                && from->dstLOD == 0);
    *params_p = (hws_params_t) {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .copy.copy = *from};
    HWS_TRY(hws_params_context(context, &params_p->context));
    hws_node_copy_t *kept = &params_p->copy;
    HWS_TRY(check_side(true, kept));
    HWS_TRY(check_side(false, kept));
    kept->on_host = !kept->to_device && !kept->from_device;
    if (kept->on_host || ((!kept->to_device || !kept->from_device) && !kept->shared)) {
        params_p->call = hws_graph_call_copy(kept);
        if (params_p->call == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    return CUDA_SUCCESS;
}

/* The two ends of a copy that hws_params_copy() has accepted. */
static void sides_of(const hws_node_copy_t *kept, bool source, hws_place_t *side_p) {
    uint64_t first, last;
    if (side_of(&kept->copy, source, side_p) == CUDA_SUCCESS && side_p->array == NULL) {
        (void) extent_of(side_p, &kept->copy, &first, &last);
    }
    side_p->device = source ? kept->from_device : kept->to_device;
}

static void describe(const hws_params_t *params, bool source, HwsGraphEnd *end_p) {
    const hws_node_copy_t *kept = &params->copy;
    hws_place_t side;
    sides_of(kept, source, &side);
    if (side.array != NULL) {
        *end_p = (HwsGraphEnd) {.place = PLACE_ARRAY,
                                .base = (uint64_t) (uintptr_t) side.array,
                                .xBytes = side.x,
                                .y = side.y,
                                .z = side.z};
    } else if (side.device) {
        *end_p = (HwsGraphEnd) {.place = PLACE_DEVICE,
                                .base = side.base,
                                .pitch = side.pitch,
                                .height = side.height,
                                .xBytes = side.x,
                                .y = side.y,
                                .z = side.z};
    } else if (params->call == NULL) {
        *end_p = (HwsGraphEnd) {
            .place = PLACE_REGION, .base = kept->region_offset, .pitch = side.pitch, .height = side.height};
    } else {
        *end_p = (HwsGraphEnd) {.place = PLACE_GUEST, .base = hws_graph_call_id(params->call)};
    }
}

void hws_copy_describe(const hws_params_t *params, HwsGraphCopy *wire_p) {
    const CUDA_MEMCPY3D *copy = &params->copy.copy;
    *wire_p = (HwsGraphCopy) {.widthBytes = copy->WidthInBytes, .rows = copy->Height, .slices = copy->Depth};
    describe(params, false, &wire_p->dst);
    describe(params, true, &wire_p->src);
}

static char *row_of(const hws_place_t *side, uint64_t row, uint64_t slice) {
    uint64_t offset = ((side->z + slice) * side->height + side->y + row) * side->pitch + side->x;
    return (char *) (uintptr_t) side->base + offset;
}

static void copy_on_host(const hws_node_copy_t *kept) {
    const CUDA_MEMCPY3D *copy = &kept->copy;
    hws_place_t dst, src;
    sides_of(kept, false, &dst);
    sides_of(kept, true, &src);
    for (uint64_t z = 0; z < copy->Depth; z++) {
        for (uint64_t y = 0; y < copy->Height; y++) {
            memmove(row_of(&dst, y, z), row_of(&src, y, z), copy->WidthInBytes);
        }
    }
}

/* Copies bytes [offset, offset + count) of the contiguous box between the buffer and the program's memory. */
static CUresult move_part(const CUDA_MEMCPY3D *copy, const hws_place_t *host, bool gather, char *buffer,
                          uint64_t offset, uint64_t count) {
    while (count > 0) {
        uint64_t row = offset / copy->WidthInBytes, x = offset % copy->WidthInBytes;
        uint64_t part = copy->WidthInBytes - x < count ? copy->WidthInBytes - x : count;
        char *memory = row_of(host, row % copy->Height, row / copy->Height) + x;
        HWS_TRY(hws_mirror_copy(buffer, (uint64_t) (uintptr_t) memory, part, !gather));
        buffer += part;
        offset += part;
        count -= part;
    }
    return CUDA_SUCCESS;
}

/* Moves the bytes in pieces, in place or through a buffer. */
static CUresult move_bytes(const hws_node_copy_t *kept, const hws_place_t *host, bool in_place, uint64_t call_id) {
    const CUDA_MEMCPY3D *copy = &kept->copy;
    uint64_t total = copy->WidthInBytes * copy->Height * copy->Depth;
    uint64_t limit = hws_channel_welcome()->max_bulk_bytes;
    char *buffer = in_place ? NULL : malloc(total < limit ? total : limit);
    if (!in_place && buffer == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = CUDA_SUCCESS;
    for (uint64_t at = 0; at < total && result == CUDA_SUCCESS; at += limit) {
        uint64_t part = total - at < limit ? total - at : limit;
        char *bytes = in_place ? row_of(host, 0, 0) + at : buffer;
        if (kept->to_device) {
            if (!in_place) {
                result = move_part(copy, host, true, buffer, at, part);
            }
            result = result == CUDA_SUCCESS ? hws_call_hwsGraphNodeWrite(call_id, at, part, bytes) : result;
        } else {
            result = hws_call_hwsGraphNodeRead(call_id, at, (uint32_t) part, bytes);
            if (result == CUDA_SUCCESS && !in_place) {
                result = move_part(copy, host, false, buffer, at, part);
            }
        }
    }
    free(buffer);
    return result;
}

static CUresult move(const hws_node_copy_t *kept, uint64_t call_id) {
    const CUDA_MEMCPY3D *copy = &kept->copy;
    hws_place_t host;
    sides_of(kept, !kept->from_device, &host);
    const char *first = row_of(&host, 0, 0);
    hws_plain_copy_t plain;
    bool in_place = copy->Depth == 1 && (copy->Height == 1 || host.pitch == copy->WidthInBytes)
        && hws_shadow_begin_copy(&plain, first, copy->WidthInBytes * copy->Height);
    CUresult result = move_bytes(kept, &host, in_place, call_id);
    if (in_place) {
        hws_shadow_end_copy(&plain);
    }
    return result;
}

void hws_copy_run(const hws_node_copy_t *copy, uint64_t call_id) {
    if (copy->on_host) {
        copy_on_host(copy);
        return;
    }
    CUresult result = move(copy, call_id);
    if (result != CUDA_SUCCESS) {
        hws_log(HWS_WARN, "a graph's copy has not moved its bytes: %d", result);
    }
}
