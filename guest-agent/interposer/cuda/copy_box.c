/*
 * Copies of 2D and 3D boxes. In a record and in a chunk a box is contiguous. This file gathers the rows; it or the
 * channel's reader scatters them. Pinned memory in the region is copied in place.
 */
#include "array.h"
#include "capture.h"
#include "copy.h"

#include "hws_cuda_calls.h"
#include "shm/hws_bulk.h"

#include <stdlib.h>
#include <string.h>

/* Rows of one record. The worker limits the work of a record. */
#define MAX_ROWS (1ull << 20)

/*
 * One end of a copy: rows of pitch bytes, slices of height rows, and the box's origin in them. An array has no pitch.
 */
typedef struct hws_end {
    bool device; /* not the host: device memory, or an array */
    CUarray array;
    uint64_t base;
    uint64_t pitch, height;
    uint64_t x, y, z;
} hws_end_t;

typedef struct hws_box {
    hws_end_t dst, src;
    uint64_t width, rows, slices;
} hws_box_t;

static CUresult classify(CUmemorytype type, const void *host, CUdeviceptr device, CUarray array, hws_end_t *end_p) {
    switch (type) {
        case CU_MEMORYTYPE_HOST:
            end_p->base = (uint64_t) (uintptr_t) host;
            end_p->device = false;
            return CUDA_SUCCESS;
        case CU_MEMORYTYPE_DEVICE:
            end_p->base = device;
            end_p->device = true;
            return CUDA_SUCCESS;
        case CU_MEMORYTYPE_UNIFIED:
            end_p->base = device;
            end_p->device = hws_copy_is_device(device);
            return CUDA_SUCCESS;
        case CU_MEMORYTYPE_ARRAY:
            end_p->array = array;
            end_p->device = true;
            return array == NULL ? CUDA_ERROR_INVALID_VALUE
                : hws_array_get(array) == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Offset of (x, y, z) from the base; false when it does not fit 64 bits. */
static bool offset_of(const hws_end_t *end, uint64_t x, uint64_t y, uint64_t z, uint64_t *offset_p) {
    uint64_t row;
    return !__builtin_mul_overflow(z, end->height, &row) && !__builtin_add_overflow(row, y, &row)
        && !__builtin_mul_overflow(row, end->pitch, offset_p) && !__builtin_add_overflow(*offset_p, x, offset_p);
}

/* Whether n elements from the first on lie within `count` elements. */
static bool inside(uint64_t first, uint64_t n, uint64_t count) {
    return n <= count && first <= count - n;
}

/* Checks that the box lies in the array. As in CUDA it may begin and end within elements. */
static CUresult check_array(const hws_end_t *end, const hws_box_t *box) {
    HWS_TAKE_ARRAY(array, end->array);
    HWS_REQUIRE(inside(end->x, box->width, hws_array_width_bytes(array))
                && inside(end->y, box->rows, hws_array_rows(array))
                && inside(end->z, box->slices, hws_array_slices(array)));
    return CUDA_SUCCESS;
}

/* Fills in values that CUDA lets a program omit, and checks that the box lies in its memory. */
static CUresult check_end(hws_end_t *end, const hws_box_t *box) {
    uint64_t row_end, rows_end, first, last;
    if (end->array != NULL) {
        return check_array(end, box);
    }
    HWS_REQUIRE(end->base != 0 && !__builtin_add_overflow(end->x, box->width, &row_end)
                && !__builtin_add_overflow(end->y, box->rows, &rows_end));
    bool one_row = rows_end == 1 && end->z + box->slices == 1;
    if (end->pitch == 0 && one_row) {
        end->pitch = row_end;
    }
    if (end->height == 0 && end->z + box->slices == 1) {
        end->height = rows_end;
    }
    HWS_REQUIRE(end->pitch >= row_end && (end->height >= rows_end || box->slices == 1));
    if (end->height < rows_end) {
        end->height = rows_end; /* one slice: the distance to the next is never used */
        HWS_REQUIRE(end->z == 0);
    }
    HWS_REQUIRE(offset_of(end, end->x, end->y, end->z, &first)
                && offset_of(end, row_end, rows_end - 1, end->z + box->slices - 1, &last));
    return end->device ? hws_copy_check_device(end->base + first, last - first) : CUDA_SUCCESS;
}

static char *host_row(const hws_end_t *end, uint64_t row, uint64_t slice) {
    /* No overflow: check_end() has computed the offset of the last byte. */
    uint64_t offset = ((end->z + slice) * end->height + end->y + row) * end->pitch + end->x;
    return (char *) (uintptr_t) end->base + offset;
}

/* Sends rows [row, row + rows) of slices [slice, slice + slices), columns [x, x + width). */
static CUresult write_piece(const hws_box_t *box, char *buffer, uint64_t x, uint64_t width, uint64_t row, uint64_t rows,
                            uint64_t slice, uint64_t slices, CUstream stream) {
    const hws_end_t *dst = &box->dst;
    const char *data = host_row(&box->src, row, slice) + x;
    bool contiguous = slices == 1 && (rows == 1 || box->src.pitch == width);
    if (!contiguous) {
        char *at = buffer;
        for (uint64_t z = 0; z < slices; z++) {
            for (uint64_t y = 0; y < rows; y++, at += width) {
                memcpy(at, host_row(&box->src, row + y, slice + z) + x, width);
            }
        }
        data = buffer;
    }
    if (dst->array != NULL) {
        return hws_call_hwsWriteArray(dst->array, dst->x + x, dst->y + row, dst->z + slice, width, rows, slices, stream,
                                      data);
    }
    return hws_call_hwsWriteBox(dst->base, dst->pitch, dst->height, dst->x + x, dst->y + row, dst->z + slice, width,
                                rows, slices, stream, data);
}

/* Splits the box into pieces of the worker's limit: whole slices, else whole rows, else parts of a row. */
static CUresult write_box(const hws_box_t *box, CUstream stream) {
    uint64_t limit = hws_channel_welcome()->max_bulk_bytes;
    uint64_t width = box->width < limit ? box->width : limit;
    uint64_t rows = width < box->width ? 1 : limit / width < box->rows ? limit / width : box->rows;
    uint64_t slices = width < box->width || rows < box->rows ? 1 : limit / (width * rows);
    slices = slices < box->slices ? slices : box->slices;
    /* NOLINTNEXTLINE(*.UnixAPI): a box has at least one byte */
    char *buffer = malloc(width * rows * slices);
    if (buffer == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = CUDA_SUCCESS;
    for (uint64_t z = 0; z < box->slices && result == CUDA_SUCCESS; z += slices) {
        uint64_t zs = box->slices - z < slices ? box->slices - z : slices;
        for (uint64_t y = 0; y < box->rows && result == CUDA_SUCCESS; y += rows) {
            uint64_t ys = box->rows - y < rows ? box->rows - y : rows;
            for (uint64_t x = 0; x < box->width && result == CUDA_SUCCESS; x += width) {
                uint64_t xs = box->width - x < width ? box->width - x : width;
                result = write_piece(box, buffer, x, xs, y, ys, z, zs, stream);
            }
        }
    }
    free(buffer);
    return result;
}

/* Receives a part of the box. */
static CUresult read_part(const hws_box_t *box, const hws_bulk_part_t *part, CUstream stream, bool wait) {
    const hws_end_t *src = &box->src, *dst = &box->dst;
    const hws_target_t target = {
        .base = host_row(dst, part->row, part->slice) + part->x,
        .width_bytes = part->width,
        .rows = part->rows,
        .pitch_bytes = dst->pitch,
        .slices = part->slices,
        .slice_pitch_bytes = dst->height * dst->pitch,
    };
    if (src->array != NULL) {
        return hws_call_hwsReadArray(src->array, src->x + part->x, src->y + part->row, src->z + part->slice,
                                     part->width, part->rows, part->slices, stream, &target, wait);
    }
    return hws_call_hwsReadBox(src->base, src->pitch, src->height, src->x + part->x, src->y + part->row,
                               src->z + part->slice, part->width, part->rows, part->slices, stream, &target, wait);
}

/* A copy of a box between a device and the host, for the functions that move its parts. */
typedef struct hws_box_copy {
    const hws_box_t *box;
    CUstream stream;
} hws_box_copy_t;

/* Sends the record of a part whose rows lie in the region. A chunk is as in hwsWriteBoxShared. */
static CUresult copy_shared(const hws_box_t *box, const hws_bulk_part_t *part, CUstream stream, uint64_t offset,
                            uint64_t pitch, uint64_t slice_pitch, uint32_t chunk) {
    bool write = box->dst.device;
    const hws_end_t *end = write ? &box->dst : &box->src;
    if (end->array != NULL) {
        return (write ? hws_call_hwsWriteArrayShared : hws_call_hwsReadArrayShared)(
            end->array, end->x + part->x, end->y + part->row, end->z + part->slice, part->width, part->rows,
            part->slices, stream, offset, pitch, slice_pitch, chunk);
    }
    return (write ? hws_call_hwsWriteBoxShared : hws_call_hwsReadBoxShared)(
        end->base, end->pitch, end->height, end->x + part->x, end->y + part->row, end->z + part->slice, part->width,
        part->rows, part->slices, stream, offset, pitch, slice_pitch, chunk);
}

static int send_part(const hws_bulk_copy_t *copy, const hws_bulk_part_t *part, uint64_t offset, uint32_t chunk) {
    const hws_box_copy_t *argument = copy->argument;
    return copy_shared(argument->box, part, argument->stream, offset, part->width, part->width * part->rows, chunk + 1);
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
    CUresult result = write_piece(argument->box, buffer, part->x, part->width, part->row, part->rows, part->slice,
                                  part->slices, argument->stream);
    free(buffer);
    return result;
}

static int synchronise(const hws_bulk_copy_t *copy) {
    return hws_copy_wait(((const hws_box_copy_t *) copy->argument)->stream);
}

/* Copies from and to pinned memory in place, mostly in one record. */
static CUresult copy_pinned(const hws_box_t *box, CUstream stream, uint64_t offset, uint64_t pitch,
                            uint64_t slice_pitch) {
    uint64_t rows = box->rows < MAX_ROWS ? box->rows : MAX_ROWS;
    uint64_t slices = rows < box->rows ? 1 : MAX_ROWS / rows;
    for (uint64_t z = 0; z < box->slices; z += slices) {
        for (uint64_t y = 0; y < box->rows; y += rows) {
            const hws_bulk_part_t part = {
                .width = box->width, .row = y, .rows = box->rows - y < rows ? box->rows - y : rows,
                .slice = z, .slices = box->slices - z < slices ? box->slices - z : slices};
            HWS_TRY(copy_shared(box, &part, stream, offset + z * slice_pitch + y * pitch, pitch, slice_pitch, 0));
        }
    }
    return CUDA_SUCCESS;
}

/* Copies between a device and the host. */
static CUresult copy_with_host(const hws_box_t *box, CUstream stream, bool wait) {
    bool write = box->dst.device;
    const hws_end_t *host = write ? &box->src : &box->dst;
    char *first = host_row(host, 0, 0);
    uint64_t extent = (uint64_t) (host_row(host, box->rows - 1, box->slices - 1) + box->width - first), offset;
    /* A single slice has no next one, so the program's distance between slices may be any number. */
    uint64_t slice_pitch = box->slices == 1 ? host->pitch * box->rows : host->height * host->pitch;
    const hws_bulk_part_t whole = {.width = box->width, .rows = box->rows, .slices = box->slices};
    hws_host_t kind = hws_copy_host(first, extent, &offset);
    if (kind == HWS_HOST_SHARED) {
        HWS_TRY(copy_pinned(box, stream, offset, host->pitch, slice_pitch));
        return wait ? hws_copy_wait(stream) : CUDA_SUCCESS;
    }
    bool detached = !write && !wait && kind == HWS_HOST_PINNED;
    if (!detached && hws_copy_in_chunks(box->width * box->rows * box->slices, write)) {
        const hws_box_copy_t argument = {box, stream};
        const hws_bulk_copy_t copy = {
            .to_device = write, .eager = !wait, .host = (uint8_t *) first, .width = box->width,
            .rows = box->rows, .slices = box->slices, .pitch = host->pitch, .slice_pitch = slice_pitch,
            .send = send_part, .copy_part = copy_part, .synchronise = synchronise, .argument = &argument,
        };
        HWS_TRY(hws_bulk_run(&copy));
        return write && wait ? hws_copy_end(stream) : CUDA_SUCCESS;
    }
    if (!write) {
        return read_part(box, &whole, stream, !detached);
    }
    HWS_TRY(write_box(box, stream));
    return wait ? hws_copy_end(stream) : CUDA_SUCCESS;
}

static CUresult copy_on_device(const hws_box_t *box, CUstream stream) {
    const hws_end_t *dst = &box->dst, *src = &box->src;
    if (dst->array != NULL && src->array != NULL) {
        return hws_call_hwsArrayToArray(dst->array, dst->x, dst->y, dst->z, src->array, src->x, src->y, src->z,
                                        box->width, box->rows, box->slices, stream);
    }
    if (dst->array != NULL || src->array != NULL) {
        const hws_end_t *array = dst->array != NULL ? dst : src, *memory = dst->array != NULL ? src : dst;
        return (dst->array != NULL ? hws_call_hwsDeviceToArray : hws_call_hwsArrayToDevice)(
            array->array, array->x, array->y, array->z, box->width, box->rows, box->slices, memory->base, memory->pitch,
            memory->height, memory->x, memory->y, memory->z, stream);
    }
    return hws_call_hwsCopyBox(dst->base, dst->pitch, dst->height, dst->x, dst->y, dst->z, src->base, src->pitch,
                               src->height, src->x, src->y, src->z, box->width, box->rows, box->slices, stream);
}

static CUresult copy_on_host(const hws_box_t *box, CUstream stream) {
    HWS_TRY(hws_copy_wait(stream));
    for (uint64_t z = 0; z < box->slices; z++) {
        for (uint64_t y = 0; y < box->rows; y++) {
            memmove(host_row(&box->dst, y, z), host_row(&box->src, y, z), box->width);
        }
    }
    return CUDA_SUCCESS;
}

static CUresult copy_box(hws_box_t *box, CUstream stream, bool wait) {
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    if (box->width == 0 || box->rows == 0 || box->slices == 0) {
        return CUDA_SUCCESS;
    }
    HWS_TRY(check_end(&box->dst, box));
    HWS_TRY(check_end(&box->src, box));
    if (box->dst.device) {
        return box->src.device ? copy_on_device(box, stream) : copy_with_host(box, stream, wait);
    }
    return box->src.device ? copy_with_host(box, stream, wait) : copy_on_host(box, stream);
}

CUresult hws_copy_3d(const CUDA_MEMCPY3D *copy, CUstream stream, bool wait) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(copy != NULL && copy->dstLOD == 0 && copy->srcLOD == 0);
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    HWS_CAPTURE(stream, wait ? hws_capture_refuse(stream) : hws_capture_box(copy, stream));
    hws_box_t box = {
        .dst = {.pitch = copy->dstPitch, .height = copy->dstHeight, .x = copy->dstXInBytes, .y = copy->dstY,
                .z = copy->dstZ},
        .src = {.pitch = copy->srcPitch, .height = copy->srcHeight, .x = copy->srcXInBytes, .y = copy->srcY,
                .z = copy->srcZ},
        .width = copy->WidthInBytes,
        .rows = copy->Height,
        .slices = copy->Depth,
    };
    HWS_TRY(classify(copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstArray, &box.dst));
    HWS_TRY(classify(copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcArray, &box.src));
    return copy_box(&box, stream, wait);
}

static CUresult copy_2d(const CUDA_MEMCPY2D *copy, CUstream stream, bool wait) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(copy != NULL);
    const CUDA_MEMCPY3D deeper = {
        .srcXInBytes = copy->srcXInBytes, .srcY = copy->srcY, .srcMemoryType = copy->srcMemoryType,
        .srcHost = copy->srcHost, .srcDevice = copy->srcDevice, .srcArray = copy->srcArray, .srcPitch = copy->srcPitch,
        .dstXInBytes = copy->dstXInBytes, .dstY = copy->dstY, .dstMemoryType = copy->dstMemoryType,
        .dstHost = copy->dstHost, .dstDevice = copy->dstDevice, .dstArray = copy->dstArray, .dstPitch = copy->dstPitch,
        .WidthInBytes = copy->WidthInBytes, .Height = copy->Height, .Depth = 1,
    };
    return hws_copy_3d(&deeper, stream, wait);
}

static CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *copy, CUstream stream, bool wait) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(copy != NULL);
    const CUDA_MEMCPY3D plain = {
        .srcXInBytes = copy->srcXInBytes, .srcY = copy->srcY, .srcZ = copy->srcZ, .srcLOD = copy->srcLOD,
        .srcMemoryType = copy->srcMemoryType, .srcHost = copy->srcHost, .srcDevice = copy->srcDevice,
        .srcArray = copy->srcArray,
        .srcPitch = copy->srcPitch, .srcHeight = copy->srcHeight,
        .dstXInBytes = copy->dstXInBytes, .dstY = copy->dstY, .dstZ = copy->dstZ, .dstLOD = copy->dstLOD,
        .dstMemoryType = copy->dstMemoryType, .dstHost = copy->dstHost, .dstDevice = copy->dstDevice,
        .dstArray = copy->dstArray,
        .dstPitch = copy->dstPitch, .dstHeight = copy->dstHeight,
        .WidthInBytes = copy->WidthInBytes, .Height = copy->Height, .Depth = copy->Depth,
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

HWS_EXPORT CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy) {
    return copy_3d_peer(pCopy, NULL, true);
}

HWS_EXPORT CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *pCopy) {
    return copy_3d_peer(pCopy, CU_STREAM_PER_THREAD, true);
}

HWS_EXPORT CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream) {
    return copy_3d_peer(pCopy, hStream, false);
}
