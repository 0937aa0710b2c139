/*
 * Copies of 2D and 3D boxes. In a record and in a chunk a box is contiguous. This file gathers the rows; it or the
 * channel's reader scatters them. Pinned memory in the region is copied in place.
 */
#include "array.h"
#include "capture.h"
#include "copy.h"

#include "context.h"
#include "hws_cuda_calls.h"
#include "progress.h"
#include "shadow.h"
#include "shm/hws_bulk.h"

#include <stdlib.h>
#include <string.h>

/* Rows of one record. The worker limits the work of a record. */
#define MAX_ROWS (1ull << 20)

/* One end of a copy. Its place is in memory of the host or the device; of an array only the origin counts. */
typedef struct hws_end {
    bool device; /* not the host: device memory, or an array */
    CUarray array;
    HwsDevicePlace place;
} hws_end_t;

typedef struct hws_box {
    hws_end_t dst, src;
    HwsExtent extent;
} hws_box_t;

static CUresult classify(CUmemorytype type, const void *host, CUdeviceptr device, CUarray array, hws_end_t *end_p) {
    switch (type) {
        case CU_MEMORYTYPE_HOST:
            end_p->place.base = (uint64_t) (uintptr_t) host;
            end_p->device = false;
            return CUDA_SUCCESS;
        case CU_MEMORYTYPE_DEVICE:
            end_p->place.base = device;
            end_p->device = true;
            return CUDA_SUCCESS;
        case CU_MEMORYTYPE_UNIFIED:
            end_p->place.base = device;
            end_p->device = hws_copy_is_device(device);
            return CUDA_SUCCESS;
        case CU_MEMORYTYPE_ARRAY:
            end_p->array = array;
            end_p->device = true;
            return array == NULL               ? CUDA_ERROR_INVALID_VALUE
                : hws_array_get(array) == NULL ? CUDA_ERROR_INVALID_HANDLE
                                               : CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Offset of (x, y, z) from the base; false when it does not fit 64 bits. */
static bool offset_of(const hws_end_t *end, uint64_t x, uint64_t y, uint64_t z, uint64_t *offset_p) {
    uint64_t row;
    return !__builtin_mul_overflow(z, end->place.height, &row) && !__builtin_add_overflow(row, y, &row)
        && !__builtin_mul_overflow(row, end->place.pitch, offset_p) && !__builtin_add_overflow(*offset_p, x, offset_p);
}

/* Whether n elements from the first on lie within `count` elements. */
static bool inside(uint64_t first, uint64_t n, uint64_t count) {
    return n <= count && first <= count - n;
}

/* Checks that the box lies in the array. As in CUDA it may begin and end within elements. */
static CUresult check_array(const hws_end_t *end, const hws_box_t *box) {
    HWS_TAKE_ARRAY(array, end->array);
    const HwsPosition *origin = &end->place.origin;
    HWS_REQUIRE(inside(origin->xBytes, box->extent.widthBytes, hws_array_width_bytes(array))
                && inside(origin->y, box->extent.rows, hws_array_rows(array))
                && inside(origin->z, box->extent.slices, hws_array_slices(array)));
    return CUDA_SUCCESS;
}

/* Fills in values that CUDA lets a program omit, and checks that the box lies in its memory. */
static CUresult check_end(hws_end_t *end, const hws_box_t *box) {
    uint64_t row_end, rows_end, first, last;
    if (end->array != NULL) {
        return check_array(end, box);
    }
    HwsDevicePlace *place = &end->place;
    const HwsPosition *origin = &place->origin;
    uint64_t slices = box->extent.slices;
    HWS_REQUIRE(place->base != 0 && !__builtin_add_overflow(origin->xBytes, box->extent.widthBytes, &row_end)
                && !__builtin_add_overflow(origin->y, box->extent.rows, &rows_end));
    bool one_row = rows_end == 1 && origin->z + slices == 1;
    if (place->pitch == 0 && one_row) {
        place->pitch = row_end;
    }
    if (place->height == 0 && origin->z + slices == 1) {
        place->height = rows_end;
    }
    HWS_REQUIRE(place->pitch >= row_end && (place->height >= rows_end || slices == 1));
    if (place->height < rows_end) {
        place->height = rows_end; /* one slice: the distance to the next is never used */
        HWS_REQUIRE(origin->z == 0);
    }
    HWS_REQUIRE(offset_of(end, origin->xBytes, origin->y, origin->z, &first)
                && offset_of(end, row_end, rows_end - 1, origin->z + slices - 1, &last));
    return end->device ? hws_copy_check_device(place->base + first, last - first) : CUDA_SUCCESS;
}

static char *host_row(const hws_end_t *end, uint64_t row, uint64_t slice) {
    /* No overflow: check_end() has computed the offset of the last byte. */
    const HwsDevicePlace *place = &end->place;
    uint64_t offset =
        ((place->origin.z + slice) * place->height + place->origin.y + row) * place->pitch + place->origin.xBytes;
    return (char *) (uintptr_t) place->base + offset;
}

/* The place of a part of the box. */
static HwsDevicePlace place_of(const hws_end_t *end, const hws_bulk_part_t *part) {
    HwsDevicePlace place = end->place;
    place.origin.xBytes += part->x;
    place.origin.y += part->row;
    place.origin.z += part->slice;
    return place;
}

static HwsExtent extent_of(const hws_bulk_part_t *part) {
    return (HwsExtent) {.widthBytes = part->width, .rows = part->rows, .slices = part->slices};
}

/* Sends a part of the box. */
static CUresult write_part(const hws_box_t *box, const hws_bulk_part_t *part, char *buffer, CUstream stream) {
    const HwsDevicePlace place = place_of(&box->dst, part);
    const HwsExtent extent = extent_of(part);
    const char *data = host_row(&box->src, part->row, part->slice) + part->x;
    bool contiguous = part->slices == 1 && (part->rows == 1 || box->src.place.pitch == part->width);
    if (!contiguous) {
        char *at = buffer;
        for (uint64_t z = 0; z < part->slices; z++) {
            for (uint64_t y = 0; y < part->rows; y++, at += part->width) {
                memcpy(at, host_row(&box->src, part->row + y, part->slice + z) + part->x, part->width);
            }
        }
        data = buffer;
    }
    return box->dst.array != NULL ? hws_call_hwsWriteArray(box->dst.array, &place.origin, &extent, stream, data)
                                  : hws_call_hwsWriteBox(&place, &extent, stream, data);
}

/* Splits the box into pieces of the worker's limit: whole slices, else whole rows, else parts of a row. */
static CUresult write_box(const hws_box_t *box, CUstream stream) {
    uint64_t limit = hws_channel_welcome()->max_bulk_bytes;
    const HwsExtent *whole = &box->extent;
    uint64_t width = whole->widthBytes < limit ? whole->widthBytes : limit;
    uint64_t rows = width < whole->widthBytes ? 1 : limit / width < whole->rows ? limit / width : whole->rows;
    uint64_t slices = width < whole->widthBytes || rows < whole->rows ? 1 : limit / (width * rows);
    slices = slices < whole->slices ? slices : whole->slices;
    /* NOLINTNEXTLINE(*.UnixAPI): a box has at least one byte */
    char *buffer = malloc(width * rows * slices);
    if (buffer == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = CUDA_SUCCESS;
    for (uint64_t z = 0; z < whole->slices && result == CUDA_SUCCESS; z += slices) {
        for (uint64_t y = 0; y < whole->rows && result == CUDA_SUCCESS; y += rows) {
            for (uint64_t x = 0; x < whole->widthBytes && result == CUDA_SUCCESS; x += width) {
                const hws_bulk_part_t part = {.x = x,
                                              .width = whole->widthBytes - x < width ? whole->widthBytes - x : width,
                                              .row = y,
                                              .rows = whole->rows - y < rows ? whole->rows - y : rows,
                                              .slice = z,
                                              .slices = whole->slices - z < slices ? whole->slices - z : slices};
                result = write_part(box, &part, buffer, stream);
            }
        }
    }
    free(buffer);
    return result;
}

/* Receives a part of the box. */
static CUresult read_part(const hws_box_t *box, const hws_bulk_part_t *part, CUstream stream, bool wait) {
    const HwsDevicePlace *host = &box->dst.place, place = place_of(&box->src, part);
    const HwsExtent extent = extent_of(part);
    const hws_target_t target = {
        .base = host_row(&box->dst, part->row, part->slice) + part->x,
        .width_bytes = part->width,
        .rows = part->rows,
        .pitch_bytes = host->pitch,
        .slices = part->slices,
        .slice_pitch_bytes = host->height * host->pitch,
    };
    return box->src.array != NULL ? hws_call_hwsReadArray(box->src.array, &place.origin, &extent, stream, &target, wait)
                                  : hws_call_hwsReadBox(&place, &extent, stream, &target, wait);
}

/* A copy of a box between a device and the host, for the functions that move its parts. */
typedef struct hws_box_copy {
    const hws_box_t *box;
    CUstream stream;
} hws_box_copy_t;

/* Sends the record of a part whose rows lie in the region. A chunk is as in hwsWriteBoxShared. */
static CUresult copy_shared(const hws_box_t *box, const hws_bulk_part_t *part, CUstream stream,
                            const HwsRegionPlace *host, uint32_t chunk) {
    bool write = box->dst.device;
    const hws_end_t *end = write ? &box->dst : &box->src;
    const HwsDevicePlace place = place_of(end, part);
    const HwsExtent extent = extent_of(part);
    if (end->array != NULL) {
        return (write ? hws_call_hwsWriteArrayShared : hws_call_hwsReadArrayShared)(end->array, &place.origin, &extent,
                                                                                    stream, host, chunk);
    }
    return (write ? hws_call_hwsWriteBoxShared : hws_call_hwsReadBoxShared)(&place, &extent, stream, host, chunk);
}

static int send_part(const hws_bulk_copy_t *copy, const hws_bulk_part_t *part, uint64_t offset, uint32_t chunk) {
    const hws_box_copy_t *argument = copy->argument;
    const HwsRegionPlace host = {.offset = offset, .pitch = part->width, .slicePitch = part->width * part->rows};
    return copy_shared(argument->box, part, argument->stream, &host, chunk + 1);
}

static int copy_part(const hws_bulk_copy_t *copy, const hws_bulk_part_t *part) {
    const hws_box_copy_t *argument = copy->argument;
    if (!copy->to_device) {
        return read_part(argument->box, part, argument->stream, true);
    }
    char *buffer = malloc(part->width * part->rows * part->slices);
    if (buffer == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = write_part(argument->box, part, buffer, argument->stream);
    free(buffer);
    return result;
}

static int synchronise(const hws_bulk_copy_t *copy) {
    return hws_copy_wait(((const hws_box_copy_t *) copy->argument)->stream);
}

/* Copies from and to pinned memory in place, mostly in one record. */
static CUresult copy_pinned(const hws_box_t *box, CUstream stream, const HwsRegionPlace *host) {
    const HwsExtent *whole = &box->extent;
    uint64_t rows = whole->rows < MAX_ROWS ? whole->rows : MAX_ROWS;
    uint64_t slices = rows < whole->rows ? 1 : MAX_ROWS / rows;
    for (uint64_t z = 0; z < whole->slices; z += slices) {
        for (uint64_t y = 0; y < whole->rows; y += rows) {
            const hws_bulk_part_t part = {.width = whole->widthBytes,
                                          .row = y,
                                          .rows = whole->rows - y < rows ? whole->rows - y : rows,
                                          .slice = z,
                                          .slices = whole->slices - z < slices ? whole->slices - z : slices};
            HwsRegionPlace first = *host;
            first.offset += z * host->slicePitch + y * host->pitch;
            HWS_TRY(copy_shared(box, &part, stream, &first, 0));
        }
    }
    return CUDA_SUCCESS;
}

static CUresult send_now(const hws_bulk_copy_t *copy) {
    const hws_box_copy_t *argument = copy->argument;
    return write_box(argument->box, argument->stream);
}

static CUresult copy_box(hws_box_t *box, CUstream stream, bool wait);

/* Copies memory that the worker cannot read or write itself. */
static CUresult copy_in_records(const hws_bulk_copy_t *copy, hws_host_t kind, bool wait) {
    const hws_box_copy_t *argument = copy->argument;
    if (copy->to_device) {
        return hws_copy_to_device(copy, argument->box->dst.place.base, kind, argument->stream, send_now, wait);
    }
    const hws_bulk_part_t whole = {.width = copy->width, .rows = copy->rows, .slices = copy->slices};
    bool detached = !wait && kind == HWS_HOST_PINNED;
    HWS_TRY(!detached && hws_copy_in_chunks(copy->width * copy->rows * copy->slices, false)
                ? (CUresult) hws_bulk_run(copy)
                : read_part(argument->box, &whole, argument->stream, !detached));
    if (!detached) {
        hws_progress_note_work(argument->stream);
    }
    return CUDA_SUCCESS;
}

/* Copies between a device and the host. */
static CUresult copy_with_host(hws_box_t *box, CUstream stream, bool wait) {
    bool write = box->dst.device;
    hws_end_t *host = write ? &box->src : &box->dst;
    const hws_bulk_part_t whole = {
        .width = box->extent.widthBytes, .rows = box->extent.rows, .slices = box->extent.slices};
    char *first = host_row(host, 0, 0);
    uint64_t span = (uint64_t) (host_row(host, whole.rows - 1, whole.slices - 1) + whole.width - first), offset;
    /* A single slice has no next one, so the program's distance between slices may be any number. */
    uint64_t pitch = host->place.pitch, slice_pitch = pitch * (whole.slices == 1 ? whole.rows : host->place.height);
    hws_host_t kind = hws_copy_host(first, span, &offset);
    if (kind == HWS_HOST_SHARED) {
        const HwsRegionPlace place = {.offset = offset, .pitch = pitch, .slicePitch = slice_pitch};
        HWS_TRY(copy_pinned(box, stream, &place));
        return wait ? hws_copy_wait(stream) : CUDA_SUCCESS;
    }
    hws_plain_copy_t plain;
    if (kind == HWS_HOST_PINNED && !hws_shadow_begin_copy(&plain, first, span)) {
        host->device = hws_shadow_is_exposed((uint64_t) (uintptr_t) first); /* it has just been exposed */
        return copy_box(box, stream, wait);
    }
    const hws_box_copy_t argument = {box, stream};
    const hws_bulk_copy_t copy = {
        .to_device = write,
        .eager = !wait,
        .host = (uint8_t *) first,
        .width = whole.width,
        .rows = whole.rows,
        .slices = whole.slices,
        .pitch = pitch,
        .slice_pitch = slice_pitch,
        .send = send_part,
        .copy_part = copy_part,
        .synchronise = synchronise,
        .argument = &argument,
    };
    CUresult result = copy_in_records(&copy, kind, wait);
    if (kind == HWS_HOST_PINNED) {
        hws_shadow_end_copy(&plain);
    }
    return result;
}

static CUresult copy_on_device(const hws_box_t *box, CUstream stream) {
    const hws_end_t *dst = &box->dst, *src = &box->src;
    if (dst->array != NULL && src->array != NULL) {
        return hws_call_hwsArrayToArray(dst->array, &dst->place.origin, src->array, &src->place.origin, &box->extent,
                                        stream);
    }
    if (dst->array != NULL || src->array != NULL) {
        const hws_end_t *array = dst->array != NULL ? dst : src, *memory = dst->array != NULL ? src : dst;
        return (dst->array != NULL ? hws_call_hwsDeviceToArray : hws_call_hwsArrayToDevice)(
            array->array, &array->place.origin, &box->extent, &memory->place, stream);
    }
    return hws_call_hwsCopyBox(&dst->place, &src->place, &box->extent, stream);
}

static CUresult copy_on_host(const hws_box_t *box, CUstream stream) {
    HWS_TRY(hws_copy_wait(stream));
    for (uint64_t z = 0; z < box->extent.slices; z++) {
        for (uint64_t y = 0; y < box->extent.rows; y++) {
            memmove(host_row(&box->dst, y, z), host_row(&box->src, y, z), box->extent.widthBytes);
        }
    }
    return CUDA_SUCCESS;
}

static CUresult copy_box(hws_box_t *box, CUstream stream, bool wait) {
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    HWS_TRY(check_end(&box->dst, box));
    HWS_TRY(check_end(&box->src, box));
    if (box->dst.device) {
        if (!box->src.device) {
            return copy_with_host(box, stream, wait);
        }
        CUresult result = copy_on_device(box, stream);
        return wait ? hws_copy_settle(result, box->dst.place.base, box->src.place.base, stream) : result;
    }
    return box->src.device ? copy_with_host(box, stream, wait) : copy_on_host(box, stream);
}

/* A host address of the device's memory is the device's, as CUDA takes it. */
static void find_device(CUmemorytype *type_p, const void *host, CUdeviceptr *device_p) {
    if (*type_p == CU_MEMORYTYPE_HOST && hws_copy_is_device((CUdeviceptr) (uintptr_t) host)) {
        *type_p = CU_MEMORYTYPE_DEVICE;
        *device_p = (CUdeviceptr) (uintptr_t) host;
    }
}

CUresult hws_copy_3d(const CUDA_MEMCPY3D *claimed, CUstream stream, bool wait) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(claimed != NULL && claimed->dstLOD == 0 && claimed->srcLOD == 0);
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    CUDA_MEMCPY3D found = *claimed, *copy = &found;
    find_device(&copy->dstMemoryType, copy->dstHost, &copy->dstDevice);
    find_device(&copy->srcMemoryType, copy->srcHost, &copy->srcDevice);
    HWS_CAPTURE(stream, wait ? hws_capture_refuse(stream) : hws_capture_box(copy, stream));
    hws_box_t box = {
        .dst.place = {.pitch = copy->dstPitch,
                      .height = copy->dstHeight,
                      .origin = {.xBytes = copy->dstXInBytes, .y = copy->dstY, .z = copy->dstZ}},
        .src.place = {.pitch = copy->srcPitch,
                      .height = copy->srcHeight,
                      .origin = {.xBytes = copy->srcXInBytes, .y = copy->srcY, .z = copy->srcZ}},
        .extent = {.widthBytes = copy->WidthInBytes, .rows = copy->Height, .slices = copy->Depth},
    };
    if (copy->WidthInBytes == 0 || copy->Height == 0 || copy->Depth == 0) {
        return CUDA_SUCCESS; /* CUDA then looks at nothing else */
    }
    HWS_TRY(classify(copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstArray, &box.dst));
    HWS_TRY(classify(copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcArray, &box.src));
    return copy_box(&box, stream, wait);
}

static CUresult copy_2d(const CUDA_MEMCPY2D *copy, CUstream stream, bool wait) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(copy != NULL);
    const CUDA_MEMCPY3D deeper = {
        .srcXInBytes = copy->srcXInBytes,
        .srcY = copy->srcY,
        .srcMemoryType = copy->srcMemoryType,
        .srcHost = copy->srcHost,
        .srcDevice = copy->srcDevice,
        .srcArray = copy->srcArray,
        .srcPitch = copy->srcPitch,
        .dstXInBytes = copy->dstXInBytes,
        .dstY = copy->dstY,
        .dstMemoryType = copy->dstMemoryType,
        .dstHost = copy->dstHost,
        .dstDevice = copy->dstDevice,
        .dstArray = copy->dstArray,
        .dstPitch = copy->dstPitch,
        .WidthInBytes = copy->WidthInBytes,
        .Height = copy->Height,
        .Depth = 1,
    };
    return hws_copy_3d(&deeper, stream, wait);
}

static CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *copy, CUstream stream, bool wait) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(copy != NULL);
    const CUDA_MEMCPY3D plain = {
        .srcXInBytes = copy->srcXInBytes,
        .srcY = copy->srcY,
        .srcZ = copy->srcZ,
        .srcLOD = copy->srcLOD,
        .srcMemoryType = copy->srcMemoryType,
        .srcHost = copy->srcHost,
        .srcDevice = copy->srcDevice,
        .srcArray = copy->srcArray,
        .srcPitch = copy->srcPitch,
        .srcHeight = copy->srcHeight,
        .dstXInBytes = copy->dstXInBytes,
        .dstY = copy->dstY,
        .dstZ = copy->dstZ,
        .dstLOD = copy->dstLOD,
        .dstMemoryType = copy->dstMemoryType,
        .dstHost = copy->dstHost,
        .dstDevice = copy->dstDevice,
        .dstArray = copy->dstArray,
        .dstPitch = copy->dstPitch,
        .dstHeight = copy->dstHeight,
        .WidthInBytes = copy->WidthInBytes,
        .Height = copy->Height,
        .Depth = copy->Depth,
    };
    return hws_copy_3d(&plain, stream, wait);
}

HWS_EXPORT CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy) {
    return copy_2d(pCopy, NULL, true);
}

HWS_EXPORT CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *pCopy) {
    return copy_2d(pCopy, CU_STREAM_PER_THREAD, true);
}

HWS_EXPORT CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy) {
    return copy_2d(pCopy, NULL, true);
}

HWS_EXPORT CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *pCopy) {
    return copy_2d(pCopy, CU_STREAM_PER_THREAD, true);
}

HWS_EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream) {
    return copy_2d(pCopy, hStream, false);
}

HWS_EXPORT CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy) {
    return hws_copy_3d(pCopy, NULL, true);
}

HWS_EXPORT CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *pCopy) {
    return hws_copy_3d(pCopy, CU_STREAM_PER_THREAD, true);
}

HWS_EXPORT CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream) {
    return hws_copy_3d(pCopy, hStream, false);
}

/* As cuMemcpyPeer: after all earlier work of the contexts, and before all later work. */
static CUresult peer_in_order(const CUDA_MEMCPY3D_PEER *pCopy, CUstream stream) {
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_context_wait_for_all());
    HWS_TRY(copy_3d_peer(pCopy, stream, true));
    return hws_context_wait_for_all();
}

HWS_EXPORT CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy) {
    return peer_in_order(pCopy, NULL);
}

HWS_EXPORT CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *pCopy) {
    return peer_in_order(pCopy, CU_STREAM_PER_THREAD);
}

HWS_EXPORT CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream) {
    return copy_3d_peer(pCopy, hStream, false);
}
