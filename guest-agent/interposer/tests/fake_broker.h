/*
 * A broker and its worker in a thread, with enough of the protocol for libcuda.so.1. Its device memory is memory of
 * this process. It executes no kernel, but keeps the last launch for the test.
 */
#ifndef FAKE_BROKER_H
#define FAKE_BROKER_H

#include "hws_cuda_opcodes.h"
#include "hws_cuda_types.h"
#include "hws_handshake_proof.h"
#include "hws_layout.h"
#include "hws_test.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BROKER_DEVICES 3
#define BROKER_MAX_ALLOCATION (64u << 20)

typedef enum broker_mood {
    BROKER_KIND,
    BROKER_SILENT,
    BROKER_REFUSES,
    BROKER_MOVES_ONCE, /* sends the guest to its own address, and is kind there */
    BROKER_MOVES       /* sends it there again and again */
} broker_mood_t;

static broker_mood_t broker_mood;
static char broker_address[64];
static _Atomic unsigned broker_connections;
static int broker_listener, broker_fd = -1;
static _Atomic uint32_t broker_status_of_next_sync;
static _Atomic uint64_t broker_calls, broker_round_trips;
static _Atomic bool broker_announces; /* whether records by hwsEventRecord are reached at once */
static _Atomic unsigned broker_event_records;
static _Atomic uint64_t broker_cache_config, broker_launches;
static uint8_t broker_launch[4096]; /* payload of the last hwsLaunch */
static bool broker_has_all;         /* whether the device has sparse arrays, deferred mapping and decompression */
static uint8_t broker_part[4096];   /* payload of the last change of an array's part, or decompression */
static _Atomic uint32_t broker_part_opcode;

/* Records about graphs, in order, for the test. The ids that a launch of a graph calls back, 0 for none. */
typedef struct broker_record {
    uint32_t opcode, bytes;
    uint8_t payload[4096];
} broker_record_t;
static broker_record_t broker_graphs[64];
static _Atomic unsigned broker_graph_count;
static struct {
    uint32_t outcome, nodes, flags;
} broker_capture;                   /* the answer to calls of libraries in captures */
static _Atomic bool broker_updates; /* whether updates of executable graphs succeed */
static _Atomic uint64_t broker_graph_call, broker_graph_memory = 0x7000000000;

/*
 * The managed variables of each module that is loaded: `count` of 4 bytes each, `step` apart, the first at `address`. A
 * load moves them by `distance` for each earlier try. The bytes from `base` on lie in `bytes`, because the guest is this
 * process.
 */
static struct {
    uint64_t base, address, step, distance;
    uint32_t count; /* 0: none */
    unsigned loads, unloads, tries;
    uint32_t counters; /* a launch adds 1 to so many variables */
    uint8_t bytes[1 << 20];
} broker_managed;

/* Reads of memory before a wait for the last launch, and after it. */
static _Atomic unsigned broker_early_reads, broker_late_reads;

/* The next cuStreamSynchronize is answered when this is HOLD_NONE again, with the next record. */
enum { HOLD_NONE, HOLD_NEXT, HOLD_ONE };
static _Atomic int broker_hold;

/* The outstanding work of its one stream: host functions, and copies from the copy area. */
typedef struct broker_work {
    uint64_t callback; /* 0: a copy */
    bool sent;
    uint64_t device, offset, bytes;
} broker_work_t;
static broker_work_t broker_stream[256];
static unsigned broker_first, broker_last;
static _Atomic bool broker_is_busy;                          /* as if work ran */
static _Atomic bool broker_holds;                            /* the stream stands still */
static _Atomic uint64_t broker_host_functions, broker_ended; /* issued; acknowledged */
static uint8_t broker_area[HWS_COPY_AREA_BYTES];

static bool broker_read(void *target, size_t bytes) {
    for (uint8_t *p = target; bytes > 0;) {
        ssize_t n = read(broker_fd, p, bytes);
        if (n <= 0) {
            return false;
        }
        p += n;
        bytes -= (size_t) n;
    }
    return true;
}

static void broker_put(uint32_t opcode, uint64_t sequence, uint32_t status, const void *payload, size_t bytes) {
    size_t padded = (bytes + 7) / 8 * 8;
    uint8_t *record = calloc(1, 32 + padded);
    hws_record_header_t header = {
        .length_bytes = (int32_t) (32 + padded), .opcode = opcode, .sequence = sequence, .flags = status};
    memcpy(record, &header, sizeof header);
    if (bytes > 0) {
        memcpy(record + 32, payload, bytes);
    }
    for (size_t at = 0; at < 32 + padded;) {
        ssize_t n = send(broker_fd, record + at, 32 + padded - at, MSG_NOSIGNAL);
        if (n <= 0) {
            break; /* the guest has gone: the next read reports that */
        }
        at += (size_t) n;
    }
    free(record);
}

/* Checks the proof for the token "test.secret" and admits the guest. */
static bool broker_handshake(void) {
    hws_record_header_t header;
    uint8_t hello[1024], challenge[HWS_CHALLENGE_FIXED_BYTES], proof[HWS_PROOF_BYTES], client_key[HWS_SHA256_BYTES];
    if (!broker_read(&header, sizeof header) || !broker_read(hello, (size_t) header.length_bytes - 32)) {
        return false;
    }
    size_t hello_bytes = (size_t) header.length_bytes - 32;
    if (broker_mood == BROKER_SILENT) {
        pause();
    }
    HWS_CHECK(header.opcode == HWS_CONTROL_HELLO && header.sequence == 1 && memcmp(hello + 48, "test", 4) == 0);
    hws_token_keys_t keys;
    hws_token_keys_derive("secret", &keys);
    memset(challenge, 0x42, HWS_NONCE_SERVER_BYTES);
    hws_bytes_t pieces[3] = {{"hawser-server-2", 15}, {challenge, HWS_NONCE_SERVER_BYTES}, {hello, hello_bytes}};
    hws_hmac_sha256(keys.server_key, sizeof keys.server_key, pieces, 3, challenge + HWS_CHALLENGE_SERVER_PROOF_OFFSET);
    broker_put(HWS_CONTROL_CHALLENGE, 0, 0, challenge, sizeof challenge);
    HWS_CHECK(broker_read(&header, sizeof header) && header.opcode == HWS_CONTROL_PROOF && header.length_bytes == 64);
    HWS_CHECK(broker_read(proof, sizeof proof));
    pieces[0] = (hws_bytes_t) {"hawser-proof-2", 14};
    hws_hmac_sha256(keys.stored_key, sizeof keys.stored_key, pieces, 3, client_key);
    for (size_t i = 0; i < sizeof client_key; i++) {
        client_key[i] ^= proof[i];
    }
    hws_sha256(client_key, sizeof client_key, client_key);
    HWS_CHECK(memcmp(client_key, keys.stored_key, sizeof client_key) == 0);
    if (broker_mood == BROKER_REFUSES) {
        struct {
            uint32_t code, bytes;
            char text[16];
        } refused = {1, 13, "unknown token"};
        broker_put(HWS_CONTROL_REFUSED, 0, 0, &refused, sizeof refused);
        return false;
    }
    if (broker_mood == BROKER_MOVES_ONCE || broker_mood == BROKER_MOVES) {
        struct {
            uint32_t code, bytes;
            char text[64];
        } moved = {HWS_REFUSED_MOVED, (uint32_t) strlen(broker_address), ""};
        memcpy(moved.text, broker_address, moved.bytes);
        broker_put(HWS_CONTROL_REFUSED, 0, 0, &moved, 8 + moved.bytes);
        broker_mood = broker_mood == BROKER_MOVES_ONCE ? BROKER_KIND : BROKER_MOVES;
        return false;
    }
    struct {
        uint32_t version, devices;
        uint64_t session, window;
        uint32_t record, bulk;
        uint64_t hash;
    } welcome = {HWS_PROTOCOL_VERSION, BROKER_DEVICES,      1, HWS_CREDIT_WINDOW_BYTES, HWS_MAX_RECORD_BYTES,
                 HWS_MAX_BULK_BYTES,   HWS_DESCRIPTION_HASH};
    broker_put(HWS_CONTROL_WELCOME, 0, 0, &welcome, sizeof welcome);
    return true;
}

static uint64_t broker_u64(const uint8_t *payload, size_t at) {
    uint64_t value;
    memcpy(&value, payload + at, sizeof value);
    return value;
}

static void broker_device_info(const hws_record_header_t *request, const uint8_t *payload) {
    static HwsDeviceInfo info;
    memset(&info, 0, sizeof info);
    snprintf(info.name, sizeof info.name, "Fake GPU %d", payload[0]);
    memset(info.uuid, 0x10 + payload[0], sizeof info.uuid);
    info.totalBytes = 1ull << 30;
    info.pciBus = payload[0];
    info.attributeCount = 160;
    info.attributes[CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED] = 1;
    info.attributes[CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED] = 1; /* as an H100, but not for a guest */
    info.attributes[CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED] = 1;
    info.attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
    info.attributes[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X] = 1024;
    info.attributes[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y] = 1024;
    info.attributes[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z] = 64;
    info.attributes[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X] = INT32_MAX;
    info.attributes[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y] = 65535;
    info.attributes[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z] = 65535;
    info.attributes[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK] = 49152;
    info.attributes[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] = 101376;
    info.attributes[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR] = 102400;
    info.attributes[CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK] = 1024;
    info.attributes[CU_DEVICE_ATTRIBUTE_WARP_SIZE] = 32;
    info.attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] = 1536;
    info.attributes[CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR] = 16;
    info.attributes[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR] = 65536;
    info.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = 10;
    info.attributes[CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY] = 1;
    info.attributes[CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS] = 1;
    info.attributes[CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] = 1;
    info.attributes[CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED] = broker_has_all;
    info.attributes[CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED] = broker_has_all;
    info.attributes[CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK] =
        broker_has_all ? CU_MEM_DECOMPRESS_ALGORITHM_LZ4 : 0;
    info.attributes[CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH] = payload[0] == 0 ? 1 : 0;
    info.attributes[CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT] = 4;
    info.attributes[CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE] = 134217728;
    broker_put(request->opcode | HWS_REPLY_BIT, request->sequence, 0, &info, sizeof info);
}

/* A kernel "wide" with many parameters of type double. */
#define BROKER_WIDE_PARAMS 40

static void broker_wide_function(const hws_record_header_t *request) {
    struct {
        uint32_t count, attribute_bytes, param_bytes, padding;
        int attributes[16];
        HwsParam params[BROKER_WIDE_PARAMS];
    } reply = {BROKER_WIDE_PARAMS, 64, sizeof reply.params, 0, {1024}, {{0, 0}}};
    for (uint32_t i = 0; i < BROKER_WIDE_PARAMS; i++) {
        reply.params[i] = (HwsParam) {8 * i, 8};
    }
    broker_put(request->opcode | HWS_REPLY_BIT, request->sequence, 0, &reply, sizeof reply);
}

/* A kernel (int, double, char): offsets 0, 8, 16. The test sets its clusters. */
static int broker_cluster_width, broker_cluster_any;

static void broker_function(const hws_record_header_t *request, const uint8_t *payload) {
    if (memmem(payload, (size_t) request->length_bytes - 32, "wide", 4) != NULL) {
        broker_wide_function(request);
        return;
    }
    struct {
        uint32_t count, attribute_bytes, param_bytes, padding;
        int attributes[16];
        HwsParam params[3];
    } reply = {3, 64, sizeof reply.params, 0, {1024, 256, 0, 0, 40}, {{0, 4}, {8, 8}, {16, 1}}};
    reply.attributes[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = broker_cluster_width;
    reply.attributes[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT] = broker_cluster_width != 0;
    reply.attributes[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH] = broker_cluster_width != 0;
    reply.attributes[CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED] = broker_cluster_any;
    broker_put(request->opcode | HWS_REPLY_BIT, request->sequence, 0, &reply, sizeof reply);
}

static void broker_send_data(const hws_record_header_t *request, const uint8_t *bytes, uint64_t count) {
    for (uint64_t at = 0; at < count; at += HWS_MAX_BULK_BYTES) {
        uint32_t part = (uint32_t) (count - at < HWS_MAX_BULK_BYTES ? count - at : HWS_MAX_BULK_BYTES);
        uint8_t *payload = calloc(1, 16 + (size_t) part);
        memcpy(payload, &at, sizeof at);
        memcpy(payload + 8, &part, sizeof part);
        memcpy(payload + 16, bytes + at, part);
        broker_put(HWS_CONTROL_DATA, request->sequence, 0, payload, 16 + (size_t) part);
        free(payload);
    }
    broker_put(request->opcode | HWS_REPLY_BIT, request->sequence, 0, NULL, 0);
}

/*
 * The box parameters of hwsWriteBox and hwsReadBox have the same beginning: base, pitch, height, x, y, z, width, rows,
 * slices.
 */
static uint8_t *broker_row(const uint8_t *payload, uint64_t row, uint64_t slice) {
    uint64_t y = broker_u64(payload, 32) + row, z = broker_u64(payload, 40) + slice;
    return (uint8_t *) broker_u64(payload, 0) + (z * broker_u64(payload, 16) + y) * broker_u64(payload, 8)
        + broker_u64(payload, 24);
}

static void broker_box(const hws_record_header_t *request, const uint8_t *payload, bool writes) {
    uint64_t width = broker_u64(payload, 48), rows = broker_u64(payload, 56), slices = broker_u64(payload, 64);
    uint8_t *contiguous = malloc(width * rows * slices), *at = contiguous;
    const uint8_t *data = payload + 88;
    for (uint64_t z = 0; z < slices; z++) {
        for (uint64_t y = 0; y < rows; y++, at += width, data += width) {
            uint8_t *row = broker_row(payload, y, z);
            memcpy(writes ? row : at, writes ? data : row, width);
        }
    }
    if (!writes) {
        broker_send_data(request, contiguous, width * rows * slices);
    }
    free(contiguous);
}

/*
 * Handles records of graphs: keeps them for the test and answers those that wait. Returns false for records that get
 * the usual answer.
 */
static bool broker_graph(const hws_record_header_t *request, const uint8_t *payload) {
    unsigned at = atomic_load(&broker_graph_count);
    uint32_t bytes = (uint32_t) request->length_bytes - 32;
    uint64_t words[4] = {0};
    /* Of several changes in a row only the last is kept: rules make thousands of them. */
    bool again = at > 0 && broker_graphs[at - 1].opcode == request->opcode;
    at -= again && request->opcode == HWS_OPCODE_hwsGraphExecSetKernel ? 1 : 0;
    HWS_CHECK(at < 64);
    broker_graphs[at].opcode = request->opcode;
    broker_graphs[at].bytes = bytes;
    memcpy(broker_graphs[at].payload, payload, bytes < sizeof broker_graphs[at].payload ? bytes : 4096);
    atomic_store(&broker_graph_count, at + 1);
    switch (request->opcode) {
        case HWS_OPCODE_hwsGraphInstantiate:
            /* The driver's handle, for kernels: CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH. */
            words[3] = (broker_u64(payload, 16) & 4) != 0 ? 0x7f0000001000 + 16ull * at : 0;
            broker_put(request->opcode | HWS_REPLY_BIT, request->sequence, 0, words, sizeof words);
            return true;
        case HWS_OPCODE_hwsGraphAddCondition:
            words[0] = 0x7f1234567890;
            broker_put(request->opcode | HWS_REPLY_BIT, request->sequence, 0, words, 8);
            return true;
        case HWS_OPCODE_hwsGraphExecUpdate: {
            /* Refused: CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, the topology, node 0 of the given graph. */
            struct {
                uint32_t outcome, result;
                uint64_t graph;
                uint32_t index, padding;
                uint64_t from;
                uint32_t from_index, more;
            } reply = {910, 2, broker_u64(payload, 8), 0, 0, 0, 0, 0};
            if (atomic_load(&broker_updates)) {
                memset(&reply, 0, sizeof reply);
            }
            broker_put(request->opcode | HWS_REPLY_BIT, request->sequence, 0, &reply, sizeof reply);
            return true;
        }
        case HWS_OPCODE_hwsGraphCapture: {
            uint32_t reply[6 + 2] = {broker_capture.outcome, broker_capture.nodes, broker_capture.flags, 8, 8, 0, 0x5a};
            HWS_CHECK((broker_u64(payload, 8) >> 32) == 8); /* bytes of the result */
            broker_put(request->opcode | HWS_REPLY_BIT, request->sequence, 0, reply, sizeof reply);
            return true;
        }
        case HWS_OPCODE_hwsGraphAddAlloc:
            words[0] = atomic_load(&broker_graph_memory);
            broker_put(request->opcode | HWS_REPLY_BIT, request->sequence, 0, words, 8);
            return true;
        case HWS_OPCODE_hwsGraphNodeRead: {
            struct {
                uint32_t bytes, padding;
                uint8_t data[256];
            } reply = {(uint32_t) broker_u64(payload, 16), 0, {0}};
            for (uint32_t i = 0; i < reply.bytes; i++) {
                reply.data[i] = (uint8_t) (broker_u64(payload, 8) + i);
            }
            broker_put(request->opcode | HWS_REPLY_BIT, request->sequence, 0, &reply, 8 + (size_t) reply.bytes);
            return true;
        }
        case HWS_OPCODE_cuGraphLaunch:
            words[0] = atomic_load(&broker_graph_call);
            if (words[0] != 0) {
                broker_put(HWS_CONTROL_CALLBACK, 0, 0, words, 16);
            }
            return false;
        default:
            return false;
    }
}

static void broker_add(broker_work_t work) {
    HWS_CHECK(broker_last - broker_first < 256);
    broker_stream[broker_last++ % 256] = work;
}

/* Executes the stream's work up to a host function that has not ended. */
static void broker_run(void) {
    while (broker_first != broker_last && !atomic_load(&broker_holds)) {
        broker_work_t *work = &broker_stream[broker_first % 256];
        if (work->callback != 0) {
            uint64_t words[2] = {work->callback, 0};
            if (!work->sent) {
                work->sent = true;
                broker_put(HWS_CONTROL_CALLBACK, 0, 0, words, sizeof words);
            }
            return;
        }
        memcpy((void *) work->device, broker_area + work->offset, work->bytes);
        broker_first++;
    }
}

/* Where the bytes at a device's address are. */
static uint8_t *broker_memory(uint64_t address) {
    bool is_managed = broker_managed.base != 0 && address - broker_managed.base < sizeof broker_managed.bytes;
    return is_managed ? broker_managed.bytes + (address - broker_managed.base) : (uint8_t *) address;
}

static void broker_list_variables(const hws_record_header_t *request, const uint8_t *payload) {
    uint64_t reply[1 + 2 * 4] = {broker_managed.count};
    uint32_t first = (uint32_t) broker_u64(payload, 8), at = first;
    for (; at < broker_managed.count && at < first + 4; at++) {
        reply[1 + 2 * (at - first)] =
            broker_managed.address + broker_managed.tries * broker_managed.distance + at * broker_managed.step;
        reply[2 + 2 * (at - first)] = 4;
    }
    reply[0] |= (uint64_t) (at - first) * 16 << 32;
    broker_put(request->opcode | HWS_REPLY_BIT, request->sequence, 0, reply, 8 + (at - first) * 16);
}

static void broker_run_kernel(void) {
    for (uint32_t i = 0; i < broker_managed.counters; i++) {
        int value;
        memcpy(&value, broker_managed.bytes + i * broker_managed.step, sizeof value);
        value++;
        memcpy(broker_managed.bytes + i * broker_managed.step, &value, sizeof value);
    }
}

/* Counts reads, and holds the answer of a wait back. Returns whether the record has been served. */
static bool broker_watch(const hws_record_header_t *request) {
    static bool has_waited = true;
    static hws_record_header_t held;
    bool is_wait = request->opcode == HWS_OPCODE_cuCtxSynchronize || request->opcode == HWS_OPCODE_cuStreamSynchronize;
    if (request->opcode == HWS_OPCODE_hwsCopyDtoH) {
        atomic_fetch_add(has_waited ? &broker_late_reads : &broker_early_reads, 1);
    }
    has_waited = request->opcode != HWS_OPCODE_hwsLaunch && (has_waited || is_wait);
    if (held.opcode != 0 && atomic_load(&broker_hold) == HOLD_NONE) {
        broker_put(held.opcode | HWS_REPLY_BIT, held.sequence, 0, NULL, 0);
        held.opcode = 0;
    }
    if (request->opcode == HWS_OPCODE_cuStreamSynchronize && atomic_load(&broker_hold) == HOLD_NEXT) {
        held = *request;
        atomic_store(&broker_hold, HOLD_ONE);
        return true;
    }
    return false;
}

static void broker_serve(const hws_record_header_t *request, const uint8_t *payload) {
    static uint64_t released;
    uint64_t words[2] = {0};
    bool waits = (request->flags & HWS_FLAG_REPLY) != 0;
    atomic_fetch_add(&broker_calls, 1);
    atomic_fetch_add(&broker_round_trips, waits ? 1 : 0);
    if (broker_watch(request)) {
        return;
    }
    if ((request->opcode & 0xFF00) == 0x0B00 && request->opcode >> 16 == 1 && broker_graph(request, payload)) {
        return;
    }
    switch (request->opcode) {
        case HWS_OPCODE_hwsDeviceInfo:
            broker_device_info(request, payload);
            return;
        case HWS_OPCODE_cuMemAlloc_v2:
            HWS_CHECK(broker_u64(payload, 0) <= BROKER_MAX_ALLOCATION);
            words[0] = (uint64_t) (uintptr_t) calloc(1, broker_u64(payload, 0));
            broker_put(request->opcode | HWS_REPLY_BIT, request->sequence, 0, words, 8);
            return;
        case HWS_OPCODE_cuMemFree_v2:
            free((void *) broker_u64(payload, 0));
            break;
        case HWS_OPCODE_hwsImageLoad:
            broker_managed.loads++;
            broker_managed.tries = (uint32_t) broker_u64(payload, 16) >> 8;
            words[0] = (uint64_t) (broker_managed.count != 0) << 32;
            broker_put(request->opcode | HWS_REPLY_BIT, request->sequence, 0, words, 16);
            return;
        case HWS_OPCODE_hwsEventRecord:
            atomic_fetch_add(&broker_event_records, 1);
            if (atomic_load(&broker_announces)) {
                broker_put(HWS_CONTROL_REACHED, request->sequence, 0, payload, 8);
            }
            break;
        case HWS_OPCODE_hwsImageUnload:
            broker_managed.unloads++;
            break;
        case HWS_OPCODE_hwsManagedVariables:
            broker_list_variables(request, payload);
            return;
        case HWS_OPCODE_hwsGlobalGet:
            words[0] = broker_managed.address + broker_managed.tries * broker_managed.distance;
            words[1] = 4;
            broker_put(request->opcode | HWS_REPLY_BIT, request->sequence, 0, words, 16);
            return;
        case HWS_OPCODE_hwsContextsQuery:
            words[0] = !atomic_load(&broker_is_busy);
            broker_put(request->opcode | HWS_REPLY_BIT, request->sequence, 0, words, 8);
            return;
        case HWS_OPCODE_hwsFunctionGet:
            broker_function(request, payload);
            return;
        case HWS_OPCODE_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags: {
            /* A number that depends on each argument, and on a preference that the test has set. */
            uint32_t block = (uint32_t) broker_u64(payload, 8);
            words[0] = 1500 / block - broker_u64(payload, 16) / 20000 - atomic_load(&broker_cache_config);
            broker_put(request->opcode | HWS_REPLY_BIT, request->sequence, 0, words, 8);
            return;
        }
        case HWS_OPCODE_cuOccupancyAvailableDynamicSMemPerBlock:
            words[0] = 90000 / (broker_u64(payload, 8) & UINT32_MAX);
            broker_put(request->opcode | HWS_REPLY_BIT, request->sequence, 0, words, 8);
            return;
        case HWS_OPCODE_cuFuncSetCacheConfig:
            atomic_store(&broker_cache_config, broker_u64(payload, 8) & UINT32_MAX);
            break;
        case HWS_OPCODE_cuCtxSetCacheConfig:
            atomic_store(&broker_cache_config, broker_u64(payload, 0) & UINT32_MAX);
            break;
        case HWS_OPCODE_hwsLaunch:
            atomic_fetch_add(&broker_launches, 1);
            broker_run_kernel();
            memcpy(broker_launch, payload, (size_t) request->length_bytes - 32);
            break;
        case HWS_OPCODE_hwsTensorMapEncode: {
            CUtensorMap map = {{broker_u64(payload, offsetof(HwsTensorMap, address)), *payload}};
            broker_put(request->opcode | HWS_REPLY_BIT, request->sequence, 0, &map, sizeof map);
            return;
        }
        case HWS_OPCODE_hwsMemCreate:
            broker_put(request->opcode | HWS_REPLY_BIT, request->sequence, 0, words, 8);
            return;
        case HWS_OPCODE_hwsArrayMap:
        case HWS_OPCODE_hwsArrayUnmap:
        case HWS_OPCODE_hwsMipmapMap:
        case HWS_OPCODE_hwsMipmapUnmap:
        case HWS_OPCODE_hwsBatchDecompress:
            memcpy(broker_part, payload, (size_t) request->length_bytes - 32);
            atomic_store(&broker_part_opcode, (uint32_t) request->opcode);
            break;
        case HWS_OPCODE_hwsCopyHtoD:
            memcpy(broker_memory(broker_u64(payload, 0)),
                   payload + (request->length_bytes - 32) - (broker_u64(payload, 16) + 7) / 8 * 8,
                   broker_u64(payload, 16));
            break;
        case HWS_OPCODE_hwsCopyDtoH:
            broker_send_data(request, broker_memory(broker_u64(payload, 0)), broker_u64(payload, 8));
            return;
        case HWS_OPCODE_hwsWriteBox:
        case HWS_OPCODE_hwsReadBox:
            broker_box(request, payload, request->opcode == HWS_OPCODE_hwsWriteBox);
            if (request->opcode == HWS_OPCODE_hwsReadBox) {
                return;
            }
            break;
        case HWS_OPCODE_hwsHostFunction:
            atomic_fetch_add(&broker_host_functions, 1);
            broker_add((broker_work_t) {.callback = broker_u64(payload, 8)});
            break;
        case HWS_CONTROL_CALLBACK_DONE:
            atomic_fetch_add(&broker_ended, 1);
            if (broker_first != broker_last && broker_stream[broker_first % 256].callback == broker_u64(payload, 0)) {
                broker_first++;
            }
            break;
        case HWS_OPCODE_hwsCopyHtoDShared:
            HWS_CHECK((uint32_t) broker_u64(payload, 32) == HWS_COPY_AREA_CHUNK);
            broker_add((broker_work_t) {
                .device = broker_u64(payload, 0), .offset = broker_u64(payload, 8), .bytes = broker_u64(payload, 16)});
            break;
        case HWS_OPCODE_hwsCopyAreaWrite:
            memcpy(broker_area + broker_u64(payload, 0), payload + 24, broker_u64(payload, 8));
            break;
        default:
            break;
    }
    broker_run();
    if (request->flags & HWS_FLAG_CREDITED) {
        released += (uint64_t) request->length_bytes;
        broker_put(HWS_CONTROL_CREDIT, 0, 0, &released, sizeof released);
    }
    if (waits) {
        uint32_t status = atomic_exchange(&broker_status_of_next_sync, 0);
        broker_put(request->opcode | HWS_REPLY_BIT, request->sequence, status, NULL, 0);
    }
}

static void *broker_main(void *unused) {
    (void) unused;
    static uint8_t payload[HWS_MAX_RECORD_BYTES];
    hws_record_header_t header;
    uint64_t sequence = 3;
    int on = 1;
    bool moves, admitted;
    do {
        moves = broker_mood == BROKER_MOVES_ONCE || broker_mood == BROKER_MOVES;
        broker_fd = accept(broker_listener, NULL, NULL);
        setsockopt(broker_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        broker_connections++;
        admitted = broker_fd >= 0 && broker_handshake();
    } while (moves && broker_fd >= 0);
    if (admitted) {
        while (broker_read(&header, sizeof header) && broker_read(payload, (size_t) header.length_bytes - 32)) {
            HWS_CHECK(header.sequence == sequence++);
            broker_serve(&header, payload);
        }
    }
    shutdown(broker_fd, SHUT_RDWR);
    return NULL;
}

/* Takes a free port, which refuses for now, and sets this process's environment to it. */
static void broker_announce(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    broker_listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    HWS_CHECK(bind(broker_listener, (struct sockaddr *) &address, sizeof address) == 0);
    HWS_CHECK(getsockname(broker_listener, (struct sockaddr *) &address, &length) == 0);
    snprintf(broker_address, sizeof broker_address, "127.0.0.1:%d", ntohs(address.sin_port));
    setenv("HAWSER_BROKER", broker_address, 1);
    setenv("HAWSER_TOKEN", "test.secret", 1);
}

/* Listens at the announced port. */
static void broker_listen(broker_mood_t mood) {
    broker_mood = mood;
    HWS_CHECK(listen(broker_listener, 1) == 0);
    pthread_t thread;
    HWS_CHECK(pthread_create(&thread, NULL, broker_main, NULL) == 0);
    pthread_detach(thread);
}

static void broker_start(broker_mood_t mood) {
    broker_announce();
    broker_listen(mood);
}

/* The broker's machine vanishes. */
static inline void broker_vanish(void) {
    shutdown(broker_fd, SHUT_RDWR);
}

#endif
