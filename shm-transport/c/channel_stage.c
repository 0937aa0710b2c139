/* Blobs: device code images, named by their digest, so that a worker receives an image only once. */
#include "hws_channel_internal.h"

#include "hws_sha256.h"

#include <string.h>

typedef struct stage_request {
    uint64_t blob_id;
    uint64_t total_bytes;
    uint8_t sha256[HWS_SHA256_BYTES];
} stage_request_t;

typedef struct stage_piece {
    uint64_t blob_id;
    uint64_t offset_bytes;
    uint32_t bytes;
    uint32_t padding;
} stage_piece_t;

_Static_assert(sizeof(stage_request_t) == HWS_STAGE_FIXED_BYTES, "");
_Static_assert(sizeof(stage_piece_t) == HWS_STAGE_DATA_FIXED_BYTES, "");
_Static_assert(offsetof(stage_piece_t, bytes) == HWS_STAGE_DATA_BYTES_OFFSET, "");

int hws_stage(const void *blob, uint64_t bytes, uint64_t *blob_id_p) {
    hws_channel_t *channel = &hws_channel;
    stage_request_t request = {.blob_id = atomic_fetch_add(&channel->next_blob, 1), .total_bytes = bytes};
    hws_sha256(blob, bytes, request.sha256);
    uint32_t reply[2] = {0}, reply_bytes = 0;
    int status = hws_call(HWS_CONTROL_STAGE, 0, &request, sizeof request, NULL, 0, reply, sizeof reply, &reply_bytes);
    if (status != 0) {
        return status;
    }
    if (reply_bytes != sizeof reply) {
        return hws_channel_fail(HWS_LOST_STATUS,
                                "the worker broke the protocol, the session is over: "
                                "a STAGE reply of %u bytes",
                                reply_bytes);
    }
    uint32_t limit = channel->welcome.max_bulk_bytes;
    for (uint64_t offset = 0; reply[0] == 0 && offset < bytes; offset += limit) {
        uint32_t part = (uint32_t) (bytes - offset < limit ? bytes - offset : limit);
        stage_piece_t piece = {request.blob_id, offset, part, 0};
        status = hws_send(HWS_CONTROL_STAGE_DATA, HWS_FLAG_CREDITED, &piece, sizeof piece,
                          (const uint8_t *) blob + offset, part);
        if (status != 0) {
            return status;
        }
    }
    *blob_id_p = request.blob_id;
    return 0;
}
