/*
 * The guest's generated calls over a test channel, which captures the sent bytes and delivers the test's reply. Frames
 * on stdin: u32 opcode, requestBytes, replyBytes, 0, then both payloads. On stdout: i32 result, u32 opcode, flags,
 * capturedBytes, outputBytes, 0, then both.
 */
#include "hws_interop.h"
#include "hws_channel.h"
#include "hws_layout.h"
#include "hws_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    uint32_t opcode;
    uint32_t flags;
    uint32_t length;
    uint8_t bytes[HWS_INTEROP_MOST];
} captured;

static uint32_t reply_length;
static uint8_t reply_bytes[HWS_INTEROP_MOST];
static uint8_t request_bytes[HWS_INTEROP_MOST];
static hws_interop_out_t outputs;

_Thread_local hws_tls_t hws_tls;
hws_stream_watcher_t *_Atomic hws_stream_watcher;

static void append(const void *bytes, uint64_t length) {
    if (length > HWS_INTEROP_MOST - captured.length) {
        abort();
    }
    if (length > 0) {
        memcpy(captured.bytes + captured.length, bytes, length);
    }
    captured.length += (uint32_t) length;
    while (captured.length % 8 != 0) {
        captured.bytes[captured.length++] = 0;
    }
}

static void capture(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_length, const void *bulk,
                    uint64_t bulk_length) {
    captured.opcode = opcode;
    captured.flags = flags;
    captured.length = 0;
    append(payload, payload_length);
    append(bulk, bulk_length);
}

int hws_send(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_length, const void *bulk,
             uint64_t bulk_length) {
    capture(opcode, flags, payload, payload_length, bulk, bulk_length);
    return 0;
}

int hws_call(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_length, const void *bulk,
             uint64_t bulk_length, void *reply, uint32_t reply_capacity, uint32_t *reply_bytes_p) {
    capture(opcode, flags, payload, payload_length, bulk, bulk_length);
    if (reply_length > reply_capacity) {
        return HWS_LOST_STATUS;
    }
    if (reply_length > 0) {
        memcpy(reply, reply_bytes, reply_length);
    }
    *reply_bytes_p = reply_length;
    return 0;
}

int hws_probe(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_length, const hws_vary_t *ranges,
              uint32_t count) {
    (void) ranges;
    (void) count;
    capture(opcode, flags | HWS_FLAG_REPLY, payload, payload_length, NULL, 0);
    return reply_length == 0 ? 0 : HWS_LOST_STATUS;
}

int hws_ask(uint32_t opcode, const void *payload, uint32_t payload_length, const hws_vary_t *ranges, uint32_t count,
            void *reply, uint32_t reply_capacity, uint32_t *reply_bytes_p) {
    (void) ranges;
    (void) count;
    return hws_call(opcode, HWS_FLAG_REPLY, payload, payload_length, NULL, 0, reply, reply_capacity, reply_bytes_p);
}

int hws_read(uint32_t opcode, const void *payload, uint32_t payload_length, const hws_target_t *target, bool wait) {
    (void) target;
    (void) wait;
    capture(opcode, HWS_FLAG_REPLY, payload, payload_length, NULL, 0);
    return 0;
}

/* Computations with small numbers, which the tests use, do not exist. */
uint64_t hws_size_compute(uint64_t compute, uint64_t type) {
    (void) type;
    return compute < 16 ? 0 : UINT64_MAX;
}

int hws_channel_fail(int status, const char *format, ...) {
    (void) format;
    return status;
}

int hws_channel_status(void) {
    return 0;
}

void *hws_interop_memory(uint64_t bytes) {
    void *memory = malloc(bytes);
    if (memory == NULL) {
        abort();
    }
    memset(memory, 0xa5, bytes);
    return memory;
}

void *hws_interop_buffer(const uint8_t *request, uint32_t *at_p, uint32_t offset, bool text) {
    uint32_t length;
    memcpy(&length, request + offset, sizeof length);
    if (length == HWS_NULL_LENGTH) {
        return NULL;
    }
    uint8_t *copy = hws_interop_memory((uint64_t) length + text);
    memcpy(copy, request + *at_p, length);
    if (text) {
        copy[length] = 0;
    }
    *at_p += (length + 7) & ~7u;
    return copy;
}

void hws_interop_fixed(hws_interop_out_t *out, uint32_t bytes) {
    memset(out->bytes, 0, bytes);
    out->length = bytes;
}

void hws_interop_bytes(hws_interop_out_t *out, uint32_t offset, const void *bytes, uint32_t length) {
    memcpy(out->bytes + offset, &length, sizeof length);
    if (length > 0) {
        memcpy(out->bytes + out->length, bytes, length);
    }
    out->length += length;
    while (out->length % 8 != 0) {
        out->bytes[out->length++] = 0;
    }
}

static void read_all(void *bytes, uint32_t length) {
    if (length > HWS_INTEROP_MOST || fread(bytes, 1, length, stdin) != length) {
        abort();
    }
}

int main(void) {
    uint32_t frame[4];
    while (fread(frame, sizeof frame, 1, stdin) == 1) {
        read_all(request_bytes, frame[1]);
        read_all(reply_bytes, frame[2]);
        reply_length = frame[2];
        outputs.length = 0;
        captured.length = 0;
        int result = hws_interop_call(frame[0], request_bytes, &outputs);
        uint32_t answer[6] = {(uint32_t) result, captured.opcode, captured.flags, captured.length, outputs.length, 0};
        fwrite(answer, sizeof answer, 1, stdout);
        fwrite(captured.bytes, 1, captured.length, stdout);
        fwrite(outputs.bytes, 1, outputs.length, stdout);
        fflush(stdout);
    }
    return 0;
}
