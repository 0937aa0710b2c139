/*
 * NCCL beside the Driver API: all-reduce in several types and reductions, reduce, broadcast, all-gather, reduce-scatter,
 * all-to-all, gather, scatter, send and receive, groups, splits, captured operations and wrong calls. The ranks are the devices of this
 * process: by groups of one thread, and by threads of their own. With `--processes N` the ranks are N processes, made by
 * fork, each with a device; with `--kill` the last one ends in the middle, and the others must get an error. The
 * functions are found by name. Without an NCCL at the other end, a call returns ncclInvalidUsage.
 */
#include "check_graphs.h"
#include "check_library.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

enum { SUCCESS = 0, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, REMOTE_ERROR = 6, IN_PROGRESS = 7 };
enum { INT8, UINT8, INT32, UINT32, INT64, UINT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16, TYPES };
enum { SUM, PROD, MAX, MIN, AVG, REDUCTIONS };
#define MAX_RANKS 8
#define COUNT 5000      /* numbers of a rank, no multiple of the ranks */
#define LARGE (3 << 20) /* more than one piece of any implementation */
#define NO_COLOR (-1)

typedef struct comm *comm_t;
typedef struct {
    char bytes[128];
} id_t_;

static const size_t sizes[TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

/* The structure of choices of NCCL 2.28 and its initial value, as programs are compiled with. */
typedef struct {
    size_t size;
    unsigned magic, version;
    int blocking, cga_cluster_size, min_ctas, max_ctas;
    const char *net_name;
    int split_share, traffic_class;
    const char *comm_name;
    int collnet_enable, cta_policy, shrink_share, nvls_ctas, channels_per_net_peer, nvlink_centric;
} config_t;
enum { UNDEFINED = INT_MIN };
static const config_t initial_config = {sizeof(config_t), 0xcafebeef, 22809,     UNDEFINED, UNDEFINED, UNDEFINED,
                                        UNDEFINED,        NULL,       UNDEFINED, UNDEFINED, NULL,      UNDEFINED,
                                        UNDEFINED,        UNDEFINED,  UNDEFINED, UNDEFINED, UNDEFINED};

DECLARE(ncclGetVersion, int *);
DECLARE(ncclGetUniqueId, id_t_ *);
DECLARE(ncclCommInitRank, comm_t *, int, id_t_, int);
DECLARE(ncclCommInitRankConfig, comm_t *, int, id_t_, int, config_t *);
DECLARE(ncclCommInitAll, comm_t *, int, const int *);
DECLARE(ncclCommSplit, comm_t, int, int, comm_t *, void *);
DECLARE(ncclCommFinalize, comm_t);
DECLARE(ncclCommDestroy, comm_t);
DECLARE(ncclCommAbort, comm_t);
DECLARE(ncclCommCount, comm_t, int *);
DECLARE(ncclCommUserRank, comm_t, int *);
DECLARE(ncclCommCuDevice, comm_t, int *);
DECLARE(ncclCommGetAsyncError, comm_t, int *);
DECLARE(ncclGroupStart, void);
DECLARE(ncclGroupEnd, void);
DECLARE(ncclAllReduce, CUdeviceptr, CUdeviceptr, size_t, int, int, comm_t, CUstream);
DECLARE(ncclReduce, CUdeviceptr, CUdeviceptr, size_t, int, int, int, comm_t, CUstream);
DECLARE(ncclBroadcast, CUdeviceptr, CUdeviceptr, size_t, int, int, comm_t, CUstream);
DECLARE(ncclBcast, CUdeviceptr, size_t, int, int, comm_t, CUstream);
DECLARE(ncclAllGather, CUdeviceptr, CUdeviceptr, size_t, int, comm_t, CUstream);
DECLARE(ncclReduceScatter, CUdeviceptr, CUdeviceptr, size_t, int, int, comm_t, CUstream);
DECLARE(ncclSend, CUdeviceptr, size_t, int, int, comm_t, CUstream);
DECLARE(ncclRecv, CUdeviceptr, size_t, int, int, comm_t, CUstream);
DECLARE(ncclAlltoAll, CUdeviceptr, CUdeviceptr, size_t, int, comm_t, CUstream);
DECLARE(ncclRedOpCreatePreMulSum, int *, void *, int, int, comm_t);
DECLARE(ncclRedOpDestroy, int, comm_t);
DECLARE(ncclMemAlloc, void **, size_t);
DECLARE(ncclMemFree, void *);
static const char *(*ncclGetErrorString)(int);
static const char *(*ncclGetLastError)(comm_t);

static void load(void) {
    open_library("libnccl.so.2", NULL);
    FIND(ncclGetVersion);
    FIND(ncclGetUniqueId);
    FIND(ncclCommInitRank);
    FIND(ncclCommInitRankConfig);
    FIND(ncclCommInitAll);
    FIND(ncclCommSplit);
    FIND(ncclCommFinalize);
    FIND(ncclCommDestroy);
    FIND(ncclCommAbort);
    FIND(ncclCommCount);
    FIND(ncclCommUserRank);
    FIND(ncclCommCuDevice);
    FIND(ncclCommGetAsyncError);
    FIND(ncclGroupStart);
    FIND(ncclGroupEnd);
    FIND(ncclAllReduce);
    FIND(ncclReduce);
    FIND(ncclBroadcast);
    FIND(ncclBcast);
    FIND(ncclAllGather);
    FIND(ncclReduceScatter);
    FIND(ncclSend);
    FIND(ncclRecv);
    FIND(ncclAlltoAll);
    FIND(ncclRedOpCreatePreMulSum);
    FIND(ncclRedOpDestroy);
    FIND(ncclMemAlloc);
    FIND(ncclMemFree);
    FIND(ncclGetErrorString);
    FIND(ncclGetLastError);
}

#define NCCL_CHECK(call) check_nccl(#call, call)
static void check_nccl(const char *what, int result) {
    if (result != SUCCESS) {
        check_fail("%s, expected ncclSuccess, got %d (%s)", what, result, ncclGetErrorString(result));
    }
}

/* A rank: its device, its buffers for LARGE numbers of 8 bytes or fewer, and its communicator. */
typedef struct rank {
    int number, ranks, device;
    CUcontext context;
    CUstream stream;
    CUdeviceptr in, out;
    comm_t comm;
} rank_t;

static void open_rank(rank_t *rank, int number, int ranks, int device) {
    *rank = (rank_t) {.number = number, .ranks = ranks, .device = device};
    CU_OK(cuDevicePrimaryCtxRetain(&rank->context, device));
    CU_OK(cuCtxSetCurrent(rank->context));
    CU_OK(cuStreamCreate(&rank->stream, CU_STREAM_NON_BLOCKING));
    CU_OK(cuMemAlloc(&rank->in, (size_t) LARGE * 8));
    CU_OK(cuMemAlloc(&rank->out, (size_t) LARGE * 8));
}

static void close_rank(rank_t *rank) {
    CU_OK(cuCtxSetCurrent(rank->context));
    CU_OK(cuMemFree(rank->in));
    CU_OK(cuMemFree(rank->out));
    CU_OK(cuStreamDestroy(rank->stream));
}

/* Number i of a rank: small, so that results are exact in every type. */
static int value(int rank, long long i) {
    return (int) ((i * 7 + rank * 3) % 5) + 1;
}

static uint16_t half(int number, int type) {
    float wide = (float) number;
    uint32_t bits;
    memcpy(&bits, &wide, sizeof bits);
    if (type == BFLOAT16) {
        return (uint16_t) (bits >> 16);
    }
    return number == 0
        ? 0
        : (uint16_t) (((bits >> 16) & 0x8000) | ((((bits >> 23) & 0xff) - 112) << 10) | ((bits >> 13) & 0x3ff));
}

/* Writes an integer as a number of a type. */
static void put(char *at, int type, int number) {
    switch (type) {
        case INT8:
        case UINT8:
            *(int8_t *) at = (int8_t) number;
            break;
        case INT32:
        case UINT32:
            *(int32_t *) at = number;
            break;
        case INT64:
        case UINT64:
            *(int64_t *) at = number;
            break;
        case FLOAT32:
            *(float *) at = (float) number;
            break;
        case FLOAT64:
            *(double *) at = number;
            break;
        default: {
            uint16_t bits = half(number, type);
            memcpy(at, &bits, sizeof bits);
        }
    }
}

/* Fills the input of a rank. */
static void fill(const rank_t *rank, int type, long long count) {
    char *numbers = malloc((size_t) count * 8);
    for (long long i = 0; i < count; i++) {
        put(numbers + i * (long long) sizes[type], type, value(rank->number, i));
    }
    CU_OK(cuCtxSetCurrent(rank->context));
    CU_OK(cuMemcpyHtoD(rank->in, numbers, (size_t) count * sizes[type]));
    CU_OK(cuMemsetD8(rank->out, 0xee, (size_t) count * sizes[type]));
    CU_OK(cuCtxSynchronize()); /* the rank's stream does not wait for the default stream */
    free(numbers);
}

/* The expected number of a reduction over all ranks. */
static int reduced(int op, int ranks, long long i) {
    int result = value(0, i);
    for (int rank = 1; rank < ranks; rank++) {
        int next = value(rank, i);
        result = op == PROD ? result * next
            : op == MAX     ? (result > next ? result : next)
            : op == MIN     ? (result < next ? result : next)
                            : result + next;
    }
    return op == AVG ? result / ranks : result;
}

typedef int (*expected_t)(const rank_t *rank, int op, long long i);

static int expect_reduced(const rank_t *rank, int op, long long i) {
    return reduced(op, rank->ranks, i);
}

/* Compares the output of a rank. */
static void compare(const char *what, const rank_t *rank, int type, int op, long long count, expected_t expected) {
    char *numbers = malloc((size_t) count * 8);
    CU_OK(cuCtxSetCurrent(rank->context));
    CU_OK(cuStreamSynchronize(rank->stream));
    CU_OK(cuMemcpyDtoH(numbers, rank->out, (size_t) count * sizes[type]));
    for (long long i = 0; i < count; i++) {
        char wanted[8];
        put(wanted, type, expected(rank, op, i));
        if (memcmp(wanted, numbers + i * (long long) sizes[type], sizes[type]) != 0) {
            check_fail("%s of type %d and reduction %d at rank %d, expected %d at %lld, got other bytes", what, type,
                       op, rank->number, expected(rank, op, i), i);
        }
    }
    free(numbers);
}

static int expect_gathered(const rank_t *rank, int op, long long i) {
    (void) rank;
    (void) op;
    return value((int) (i / COUNT), i % COUNT);
}

static int expect_scattered(const rank_t *rank, int op, long long i) {
    return reduced(op, rank->ranks, rank->number * (long long) COUNT + i);
}

static int expect_last(const rank_t *rank, int op, long long i) {
    (void) op;
    return value(rank->ranks - 1, i);
}

static int expect_exchanged(const rank_t *rank, int op, long long i) {
    (void) op;
    return value((int) (i / COUNT), rank->number * (long long) COUNT + i % COUNT);
}

static int expect_previous(const rank_t *rank, int op, long long i) {
    (void) op;
    return value((rank->number + rank->ranks - 1) % rank->ranks, i);
}

/* One operation of a rank, by its name's letter. */
static int operate(char kind, const rank_t *rank, int type, int op, size_t count) {
    int last = rank->ranks - 1;
    switch (kind) {
        case 'a':
            return ncclAllReduce(rank->in, rank->out, count, type, op, rank->comm, rank->stream);
        case 'r':
            return ncclReduce(rank->in, rank->number == last ? rank->out : 0, count, type, op, last, rank->comm,
                              rank->stream);
        case 'b':
            return ncclBroadcast(rank->in, rank->out, count, type, last, rank->comm, rank->stream);
        case 'g':
            return ncclAllGather(rank->in, rank->out, count, type, rank->comm, rank->stream);
        case 's':
            return ncclReduceScatter(rank->in, rank->out, count, type, op, rank->comm, rank->stream);
        case 'x':
            return ncclAlltoAll(rank->in, rank->out, count, type, rank->comm, rank->stream);
        default: /* to the next rank, from the previous one */
            ncclGroupStart();
            ncclSend(rank->in, count, type, (rank->number + 1) % rank->ranks, rank->comm, rank->stream);
            ncclRecv(rank->out, count, type, (rank->number + last) % rank->ranks, rank->comm, rank->stream);
            return ncclGroupEnd();
    }
}

/* Runs an operation on the ranks of this process, and compares what the ranks get. */
static void run(const char *what, char kind, rank_t *ranks, int here, int type, int op, size_t count,
                expected_t expected) {
    size_t parts = strchr("gsx", kind) != NULL ? (size_t) ranks->ranks : 1;
    for (int i = 0; i < here; i++) {
        fill(&ranks[i], type, (long long) (count * parts));
    }
    NCCL_CHECK(ncclGroupStart());
    for (int i = 0; i < here; i++) {
        CU_OK(cuCtxSetCurrent(ranks[i].context));
        operate(kind, &ranks[i], type, op, count);
    }
    check_nccl(what, ncclGroupEnd());
    for (int i = 0; i < here; i++) {
        if (kind != 'r' || ranks[i].number == ranks[i].ranks - 1) {
            compare(what, &ranks[i], type, op, (long long) (strchr("gx", kind) != NULL ? count * parts : count),
                    expected);
        }
    }
}

static void run_all(rank_t *ranks, int here) {
    for (int type = 0; type < TYPES; type++) {
        for (int op = 0; op < REDUCTIONS; op++) {
            if (op == AVG && type >= FLOAT16) {
                continue; /* an average may be no integer, which all other results are */
            }
            run("ncclAllReduce", 'a', ranks, here, type, op, COUNT, expect_reduced);
        }
        run("ncclReduce", 'r', ranks, here, type, SUM, COUNT, expect_reduced);
        run("ncclBroadcast", 'b', ranks, here, type, SUM, COUNT, expect_last);
        run("ncclAllGather", 'g', ranks, here, type, SUM, COUNT, expect_gathered);
        run("ncclReduceScatter", 's', ranks, here, type, MAX, COUNT, expect_scattered);
        run("ncclAlltoAll", 'x', ranks, here, type, SUM, COUNT, expect_exchanged);
        run("ncclSend and ncclRecv", 'p', ranks, here, type, SUM, COUNT, expect_previous);
    }
    run("a large ncclAllReduce", 'a', ranks, here, FLOAT32, SUM, LARGE, expect_reduced);
    run("a small ncclAllReduce", 'a', ranks, here, FLOAT64, SUM, 1, expect_reduced);
    run("a large ncclBroadcast", 'b', ranks, here, FLOAT64, SUM, LARGE, expect_last);
}

static int expect_doubled(const rank_t *rank, int op, long long i) {
    return 2 * reduced(op, rank->ranks, i);
}

/* A reduction with a factor, in place. */
static void run_factor(rank_t *ranks, int here) {
    float two = 2;
    int ops[MAX_RANKS];
    for (int i = 0; i < here; i++) {
        fill(&ranks[i], FLOAT32, COUNT);
        CU_OK(cuMemcpyDtoD(ranks[i].out, ranks[i].in, COUNT * sizeof(float)));
        CU_OK(cuCtxSynchronize());
        NCCL_CHECK(ncclRedOpCreatePreMulSum(&ops[i], &two, FLOAT32, 1, ranks[i].comm));
    }
    NCCL_CHECK(ncclGroupStart());
    for (int i = 0; i < here; i++) {
        ncclAllReduce(ranks[i].out, ranks[i].out, COUNT, FLOAT32, ops[i], ranks[i].comm, ranks[i].stream);
    }
    NCCL_CHECK(ncclGroupEnd());
    for (int i = 0; i < here; i++) {
        NCCL_CHECK(ncclRedOpDestroy(ops[i], ranks[i].comm));
        compare("a sum with a factor", &ranks[i], FLOAT32, SUM, COUNT, expect_doubled);
    }
}

/* Splits into even and odd ranks, in reverse order. */
static void run_split(rank_t *ranks, int here) {
    rank_t parts[MAX_RANKS];
    NCCL_CHECK(ncclGroupStart());
    for (int i = 0; i < here; i++) {
        parts[i] = ranks[i];
        NCCL_CHECK(
            ncclCommSplit(ranks[i].comm, ranks[i].number == 0 ? NO_COLOR : 1, -ranks[i].number, &parts[i].comm, NULL));
    }
    NCCL_CHECK(ncclGroupEnd());
    for (int i = 0; i < here; i++) {
        if (ranks[i].number == 0) {
            check_true("no communicator without a color", parts[i].comm == NULL);
            continue;
        }
        NCCL_CHECK(ncclCommCount(parts[i].comm, &parts[i].ranks));
        NCCL_CHECK(ncclCommUserRank(parts[i].comm, &parts[i].number));
        check_equal("ranks of the part", ranks[i].ranks - 1, parts[i].ranks);
        check_equal("rank in the part", ranks[i].ranks - 1 - ranks[i].number, parts[i].number);
    }
    int first = ranks[0].number == 0 ? 1 : 0;
    if (first < here) {
        run("ncclAllReduce of a part", 'a', parts + first, here - first, INT32, SUM, COUNT, expect_reduced);
    }
    for (int i = first; i < here; i++) {
        NCCL_CHECK(ncclCommDestroy(parts[i].comm));
    }
}

/* Begins a capture in the stream of each rank of this process. */
static void begin_captures(const rank_t *ranks, int here) {
    for (int i = 0; i < here; i++) {
        CU_OK(cuCtxSetCurrent(ranks[i].context));
        CU_OK(cuStreamBeginCapture(ranks[i].stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    }
}

/* Makes executable graphs of the captures. */
static void end_captures(const rank_t *ranks, int here, CUgraphExec *execs) {
    CUgraph graphs[MAX_RANKS];
    for (int i = 0; i < here; i++) {
        CU_OK(cuCtxSetCurrent(ranks[i].context));
        CU_OK(cuStreamEndCapture(ranks[i].stream, &graphs[i]));
    }
    for (int i = 0; i < here; i++) { /* which CUDA refuses while a stream of the thread captures */
        CU_OK(cuCtxSetCurrent(ranks[i].context));
        CU_OK(cuGraphInstantiate(&execs[i], graphs[i], 0));
        CU_OK(cuGraphDestroy(graphs[i]));
    }
}

static void launch(const rank_t *ranks, int here, CUgraphExec *execs) {
    for (int i = 0; i < here; i++) {
        CU_OK(cuCtxSetCurrent(ranks[i].context));
        CU_OK(cuGraphLaunch(execs[i], ranks[i].stream));
    }
}

static void operate_together(char kind, const rank_t *ranks, int here) {
    NCCL_CHECK(ncclGroupStart());
    for (int i = 0; i < here; i++) {
        operate(kind, &ranks[i], INT32, SUM, COUNT); /* the other devices' contexts are not current */
    }
    NCCL_CHECK(ncclGroupEnd());
}

/* Captures an operation once, and launches it with new numbers each time, once beside the same operation. */
static void run_captured(const char *what, char kind, rank_t *ranks, int here, expected_t expected) {
    long long parts = strchr("gsx", kind) != NULL ? ranks->ranks : 1;
    CUgraphExec execs[MAX_RANKS];
    begin_captures(ranks, here);
    operate_together(kind, ranks, here);
    end_captures(ranks, here, execs);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < here; i++) {
            fill(&ranks[i], INT32, COUNT * parts);
        }
        launch(ranks, here, execs);
        if (round == 1) {
            operate_together(kind, ranks, here);
            launch(ranks, here, execs);
        }
        for (int i = 0; i < here; i++) {
            if (kind != 'r' || ranks[i].number == ranks[i].ranks - 1) {
                compare(what, &ranks[i], INT32, SUM, strchr("gx", kind) != NULL ? COUNT * parts : COUNT, expected);
            }
        }
    }
    for (int i = 0; i < here; i++) {
        CU_OK(cuGraphExecDestroy(execs[i]));
    }
}

/* Two streams of a capture use a communicator, and nothing else orders them. */
static void run_forked(rank_t *ranks, int here) {
    const size_t apart = (size_t) LARGE * 4; /* bytes between the operations' memory */
    rank_t others[MAX_RANKS];
    CUevent events[MAX_RANKS];
    CUgraphExec execs[MAX_RANKS];
    for (int i = 0; i < here; i++) {
        fill(&ranks[i], INT32, COUNT);
        CU_OK(cuMemcpyDtoD(ranks[i].in + apart, ranks[i].in, COUNT * sizeof(int)));
        CU_OK(cuMemsetD8(ranks[i].out + apart, 0xee, COUNT * sizeof(int)));
        CU_OK(cuCtxSynchronize());
        others[i] = ranks[i];
        others[i].in += apart;
        others[i].out += apart;
        CU_OK(cuStreamCreate(&others[i].stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
    }
    begin_captures(ranks, here);
    for (int i = 0; i < here; i++) {
        CU_OK(cuCtxSetCurrent(ranks[i].context));
        CU_OK(cuEventRecord(events[i], ranks[i].stream));
        CU_OK(cuStreamWaitEvent(others[i].stream, events[i], 0));
    }
    for (int round = 0; round < 4; round++) {
        operate_together('a', ranks, here);
        operate_together('a', others, here);
    }
    for (int i = 0; i < here; i++) {
        CU_OK(cuCtxSetCurrent(ranks[i].context));
        CU_OK(cuEventRecord(events[i], others[i].stream));
        CU_OK(cuStreamWaitEvent(ranks[i].stream, events[i], 0));
    }
    end_captures(ranks, here, execs);
    launch(ranks, here, execs);
    for (int i = 0; i < here; i++) {
        compare("ncclAllReduce in a capture's first stream", &ranks[i], INT32, SUM, COUNT, expect_reduced);
        others[i].stream = ranks[i].stream;
        compare("ncclAllReduce in a capture's second stream", &others[i], INT32, SUM, COUNT, expect_reduced);
        CU_OK(cuGraphExecDestroy(execs[i]));
        CU_OK(cuEventDestroy(events[i]));
    }
}

static void run_graphs(rank_t *ranks, int here) {
    run_captured("a captured ncclAllReduce", 'a', ranks, here, expect_reduced);
    run_captured("a captured ncclReduce", 'r', ranks, here, expect_reduced);
    run_captured("a captured ncclBroadcast", 'b', ranks, here, expect_last);
    run_captured("a captured ncclAllGather", 'g', ranks, here, expect_gathered);
    run_captured("a captured ncclReduceScatter", 's', ranks, here, expect_scattered);
    run_captured("a captured ncclAlltoAll", 'x', ranks, here, expect_exchanged);
    run_captured("captured ncclSend and ncclRecv", 'p', ranks, here, expect_previous);
    run_forked(ranks, here);
}

static void check_facts(const rank_t *ranks, int here) {
    for (int i = 0; i < here; i++) {
        int count = 0, number = -1, device = -1, error = -1;
        NCCL_CHECK(ncclCommCount(ranks[i].comm, &count));
        NCCL_CHECK(ncclCommUserRank(ranks[i].comm, &number));
        NCCL_CHECK(ncclCommCuDevice(ranks[i].comm, &device));
        NCCL_CHECK(ncclCommGetAsyncError(ranks[i].comm, &error));
        check_equal("ncclCommCount", ranks[i].ranks, count);
        check_equal("ncclCommUserRank", ranks[i].number, number);
        check_equal("ncclCommCuDevice", ranks[i].device, device);
        check_equal("ncclCommGetAsyncError", SUCCESS, error);
    }
}

static void check_errors(const rank_t *rank) {
    comm_t comm = rank->comm;
    check_equal("a NULL communicator", INVALID_ARGUMENT,
                ncclAllReduce(rank->in, rank->out, 1, FLOAT32, SUM, NULL, rank->stream));
    check_equal("an unknown type", INVALID_ARGUMENT,
                ncclAllReduce(rank->in, rank->out, 1, 99, SUM, comm, rank->stream));
    check_equal("a root beyond the ranks", INVALID_ARGUMENT,
                ncclBcast(rank->in, 1, FLOAT32, rank->ranks, comm, rank->stream));
    check_equal("the end of no group", INVALID_USAGE, ncclGroupEnd());
    check_true("a text of the last error", ncclGetLastError(comm)[0] != 0); /* the library's own words */
    check_equal("the start of a group", SUCCESS, ncclGroupStart());
    check_equal("an error in a group", INVALID_ARGUMENT, ncclSend(rank->in, 1, FLOAT32, -1, comm, rank->stream));
    check_equal("the end of its group", INVALID_ARGUMENT, ncclGroupEnd());
    check_equal("an empty group", SUCCESS, ncclGroupStart() + ncclGroupEnd());
    check_equal("no numbers", SUCCESS, ncclAllReduce(rank->in, rank->out, 0, FLOAT32, SUM, comm, rank->stream));
}

static pthread_barrier_t prepared; /* all graphs are ready */

/* A rank's thread: each operation is a call of its own, without a group, and after them comes a graph. */
static void *serve_rank(void *argument) {
    rank_t *rank = argument;
    CUgraphExec exec;
    begin_captures(rank, 1);
    NCCL_CHECK(ncclAllReduce(rank->in, rank->out, COUNT, INT64, SUM, rank->comm, rank->stream));
    end_captures(rank, 1, &exec);
    pthread_barrier_wait(&prepared);
    for (int i = 0; i < 20; i++) {
        CU_OK(cuCtxSetCurrent(rank->context));
        NCCL_CHECK(ncclAllReduce(rank->in, rank->out, COUNT, INT64, SUM, rank->comm, rank->stream));
        launch(rank, 1, &exec);
    }
    CU_OK(cuStreamSynchronize(rank->stream));
    CU_OK(cuGraphExecDestroy(exec));
    return NULL;
}

static void run_threads(rank_t *ranks, int count) {
    pthread_t threads[MAX_RANKS];
    check_equal("pthread_barrier_init", 0, pthread_barrier_init(&prepared, NULL, (unsigned) count));
    for (int i = 0; i < count; i++) {
        fill(&ranks[i], INT64, COUNT);
    }
    for (int i = 0; i < count; i++) {
        check_equal("pthread_create", 0, pthread_create(&threads[i], NULL, serve_rank, &ranks[i]));
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        compare("ncclAllReduce by threads", &ranks[i], INT64, SUM, COUNT, expect_reduced);
    }
    pthread_barrier_destroy(&prepared);
}

static int run_devices(void) {
    int count = 0, version = 0;
    CU_OK(cuInit(0));
    int status = ncclGetVersion(&version);
    if (status == INVALID_USAGE) {
        check_here("no NCCL at the other end");
        return check_pass("no NCCL");
    }
    check_nccl("ncclGetVersion", status);
    check_true("a version of NCCL 2", version >= 20000);
    CU_OK(cuDeviceGetCount(&count));
    count = count < 3 ? count : 3;
    rank_t ranks[MAX_RANKS];
    comm_t comms[MAX_RANKS];
    for (int i = 0; i < count; i++) {
        open_rank(&ranks[i], i, count, i);
    }
    int status_all = ncclCommInitAll(comms, count, NULL);
    if (status_all == SYSTEM_ERROR) { /* NVIDIA's library needs sockets, which not every vGPU has */
        check_here("ncclCommInitAll is not possible");
        return check_pass("operations of one process");
    }
    check_nccl("ncclCommInitAll", status_all);
    for (int i = 0; i < count; i++) {
        ranks[i].comm = comms[i];
    }
    check_facts(ranks, count);
    check_errors(&ranks[0]);
    run_all(ranks, count);
    run_factor(ranks, count);
    run_split(ranks, count);
    run_graphs(ranks, count);
    run_threads(ranks, count);
    void *memory = NULL;
    NCCL_CHECK(ncclMemAlloc(&memory, 1 << 20));
    NCCL_CHECK(ncclMemFree(memory));
    for (int i = 0; i < count; i++) {
        NCCL_CHECK(ncclCommDestroy(ranks[i].comm));
        close_rank(&ranks[i]);
    }
    check_here("devices: %d", count);
    return check_pass("operations of one process");
}

/* A process with one rank; `in` has the id when this is not the first rank. */
static int serve_process(int number, int ranks, int ids[2], bool kills) {
    int devices = 0;
    id_t_ id;
    rank_t rank;
    CU_OK(cuInit(0));
    CU_OK(cuDeviceGetCount(&devices));
    if (number == 0) {
        int status = ncclGetUniqueId(&id);
        if (status == SYSTEM_ERROR) {
            check_fail("ncclGetUniqueId, expected an id, got ncclSystemError: the vGPU has no communication");
        }
        check_nccl("ncclGetUniqueId", status);
        for (int i = 1; i < ranks; i++) {
            check_equal("sending the id", sizeof id, write(ids[1], &id, sizeof id));
        }
    } else {
        close(ids[1]); /* so that the first rank's end shows */
        check_equal("receiving the id", sizeof id, read(ids[0], &id, sizeof id));
    }
    open_rank(&rank, number, ranks, number % devices);
    config_t config = initial_config;
    config.magic = 0;
    check_equal("choices without their initial value", INVALID_ARGUMENT,
                ncclCommInitRankConfig(&rank.comm, ranks, id, number, &config));
    config.magic = initial_config.magic;
    config.blocking = 1;
    config.max_ctas = 16;
    config.split_share = 1;
    NCCL_CHECK(ncclCommInitRankConfig(&rank.comm, ranks, id, number, &config));
    check_facts(&rank, 1);
    if (kills) {
        fill(&rank, FLOAT32, COUNT);
        for (int i = 0; i < 10; i++) {
            NCCL_CHECK(ncclAllReduce(rank.in, rank.out, COUNT, FLOAT32, SUM, rank.comm, rank.stream));
        }
        compare("ncclAllReduce before the end", &rank, FLOAT32, SUM, COUNT, expect_reduced);
        if (number == ranks - 1) {
            raise(SIGKILL);
        }
        int error = SUCCESS;
        ncclAllReduce(rank.in, rank.out, COUNT, FLOAT32, SUM, rank.comm, rank.stream);
        while (error == SUCCESS || error == IN_PROGRESS) { /* the test's limit ends a wait without end */
            NCCL_CHECK(ncclCommGetAsyncError(rank.comm, &error));
        }
        check_equal("the error after a rank has ended", REMOTE_ERROR, error);
        NCCL_CHECK(ncclCommAbort(rank.comm));
        CU_OK(cuStreamSynchronize(rank.stream));
        close_rank(&rank);
        return 0;
    }
    run_all(&rank, 1);
    run_factor(&rank, 1);
    run_split(&rank, 1);
    run_graphs(&rank, 1);
    NCCL_CHECK(ncclCommFinalize(rank.comm));
    NCCL_CHECK(ncclCommDestroy(rank.comm));
    close_rank(&rank);
    return 0;
}

static int run_processes(int count, bool kills) {
    int ids[2];
    pid_t children[MAX_RANKS];
    check_equal("a pipe", 0, pipe(ids));
    for (int i = 0; i < count; i++) {
        children[i] = fork(); /* before CUDA begins in this process */
        if (children[i] == 0) {
            exit(serve_process(i, count, ids, kills));
        }
    }
    close(ids[1]);
    for (int i = 0; i < count; i++) {
        int status = 0;
        check_equal("a child", children[i], waitpid(children[i], &status, 0));
        if (kills && i == count - 1) {
            check_true("the killed rank", WIFSIGNALED(status));
        } else {
            check_true("a rank that passes", WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
    }
    return kills ? check_pass("the end of one of %d ranks", count) : check_pass("operations of %d processes", count);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    load();
    int processes = (int) check_option("--processes", 0);
    check_true("at most 8 processes", processes <= MAX_RANKS);
    bool kills = check_option("--kill", 0) != 0;
    return processes > 0 ? run_processes(processes, kills) : run_devices();
}
