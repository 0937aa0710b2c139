// Green contexts: a part of the device's multiprocessors with streams of its own; memory and code are the primary
// context's. The functions come from cudaGetDriverEntryPointByVersion, as frameworks find them.
#include "check_cuda.h"

#include <cuda.h>
#include <set>

static const int COUNT = 100000;
static const int BLOCKS = 2048;

__device__ int increment = 1;

__global__ void add(int *values, int count, int addend) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] += addend * increment;
    }
}

// Records the multiprocessor of each block, and stays for a while, so that all multiprocessors take part.
__global__ void places(unsigned *out, int spins) {
    unsigned place;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(place));
    unsigned value = place;
    for (int i = 0; i < spins; i++) {
        value = value * 1664525u + 1013904223u;
    }
    out[blockIdx.x] = place + (value == 1u && spins < 0 ? 1u : 0u);
}

template <typename F> static F entry(F, const char *name) {
    void *found = nullptr;
    cudaDriverEntryPointQueryResult state;
    CUDA_OK(cudaGetDriverEntryPointByVersion(name, &found, 13000, cudaEnableDefault, &state));
    check_equal(name, cudaDriverEntryPointSuccess, state);
    return (F) found;
}

#define CU(name) entry((decltype(&name)) nullptr, #name)
#define STREAM_CONTEXTS entry((decltype(&cuStreamGetCtx_v2)) nullptr, "cuStreamGetCtx")
#define CU_OK(call) check_equal(#call, CUDA_SUCCESS, (call))

struct Green {
    CUgreenCtx green;
    CUcontext context;
    CUstream stream;
};

static CUdevResource device_resource() {
    CUdevResource whole;
    CU_OK(CU(cuDeviceGetDevResource)(0, &whole, CU_DEV_RESOURCE_TYPE_SM));
    return whole;
}

static Green make(CUdevResource *parts, unsigned count) {
    Green made;
    CUdevResourceDesc desc;
    CU_OK(CU(cuDevResourceGenerateDesc)(&desc, parts, count));
    CU_OK(CU(cuGreenCtxCreate)(&made.green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    CU_OK(CU(cuCtxFromGreenCtx)(&made.context, made.green));
    CU_OK(CU(cuGreenCtxStreamCreate)(&made.stream, made.green, CU_STREAM_NON_BLOCKING, 0));
    return made;
}

static void destroy(Green *gone) {
    CUDA_OK(cudaStreamDestroy(gone->stream));
    CU_OK(CU(cuGreenCtxDestroy)(gone->green));
}

static unsigned sm_count(CUgreenCtx green) {
    CUdevResource own;
    CU_OK(CU(cuGreenCtxGetDevResource)(green, &own, CU_DEV_RESOURCE_TYPE_SM));
    check_equal("a resource's type", CU_DEV_RESOURCE_TYPE_SM, own.type);
    return own.sm.smCount;
}

// The multiprocessors on which the blocks of a launch run.
static std::set<unsigned> places_of(cudaStream_t stream) {
    unsigned *out = device_array<unsigned>(BLOCKS);
    places<<<BLOCKS, 64, 0, stream>>>(out, 20000);
    LAUNCH_OK();
    CUDA_OK(cudaStreamSynchronize(stream));
    std::vector<unsigned> got = host_copy(out, BLOCKS);
    CUDA_OK(cudaFree(out));
    return std::set<unsigned>(got.begin(), got.end());
}

static void check_values(const char *what, int *values, int expected) {
    std::vector<int> got = host_copy(values, COUNT);
    for (int i = 0; i < COUNT; i++) {
        check_element(what, i, expected, got[i]);
    }
}

// Two parts of one split: disjoint multiprocessors, and work in both of them.
static void check_parts(Green *parts, unsigned size) {
    for (int i = 0; i < 2; i++) {
        check_equal("multiprocessors of a part", size, sm_count(parts[i].green));
    }
    std::set<unsigned> first = places_of(parts[0].stream), second = places_of(parts[1].stream);
    int shared = 0;
    for (unsigned place : first) {
        shared += (int) second.count(place);
    }
    check_here("a part of %u multiprocessors used %zu, the other %zu, %d by both", size, first.size(), second.size(),
               shared);
    int *values = device_array<int>(COUNT);
    CUDA_OK(cudaMemset(values, 0, COUNT * sizeof(int)));
    CUDA_OK(cudaDeviceSynchronize());
    cudaEvent_t done;
    CUDA_OK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    for (int round = 0; round < 10; round++) {
        Green &mine = parts[round % 2], &next = parts[(round + 1) % 2];
        add<<<(COUNT + 255) / 256, 256, 0, mine.stream>>>(values, COUNT, round);
        LAUNCH_OK();
        CU_OK(CU(cuGreenCtxRecordEvent)(mine.green, done));
        CU_OK(CU(cuGreenCtxWaitEvent)(next.green, done));
    }
    CUDA_OK(cudaDeviceSynchronize()); // of the primary context: covers its green contexts
    check_values("rounds in both parts", values, 45);
    CUDA_OK(cudaEventDestroy(done));
    CUDA_OK(cudaFree(values));
}

// A green context that is current: the runtime's calls use its default stream. What they make outlives the context.
static void check_current(Green *part, CUcontext primary) {
    CUcontext current, of_stream;
    CUgreenCtx green;
    CUDA_OK(cudaFree(nullptr));
    CU_OK(CU(cuCtxPushCurrent)(part->context));
    CU_OK(CU(cuCtxGetCurrent)(&current));
    check_true("the converted context is current", current == part->context);
    int ordinal = -1;
    CUDA_OK(cudaGetDevice(&ordinal));
    check_equal("its device", 0, ordinal);
    CU_OK(CU(cuStreamGetGreenCtx)(nullptr, &green));
    check_true("the default stream's green context", green == part->green);
    CU_OK(STREAM_CONTEXTS(nullptr, &of_stream, &green));
    check_true("the default stream's primary context", of_stream == primary && green == part->green);
    int *values = device_array<int>(COUNT);
    CUDA_OK(cudaMemset(values, 0, COUNT * sizeof(int)));
    int two = 2;
    CUDA_OK(cudaMemcpyToSymbol(increment, &two, sizeof two));
    add<<<(COUNT + 255) / 256, 256>>>(values, COUNT, 5);
    LAUNCH_OK();
    cudaStream_t own;
    CUDA_OK(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
    CU_OK(CU(cuStreamGetGreenCtx)(own, &green));
    check_true("a stream made here", green == part->green);
    CUDA_OK(cudaDeviceSynchronize());
    add<<<(COUNT + 255) / 256, 256, 0, own>>>(values, COUNT, 1);
    LAUNCH_OK();
    cudaEvent_t made_here;
    CUDA_OK(cudaEventCreateWithFlags(&made_here, cudaEventDisableTiming));
    CUDA_OK(cudaEventRecord(made_here, own));
    CUDA_OK(cudaStreamSynchronize(own));
    CUDA_OK(cudaStreamDestroy(own));
    CU_OK(CU(cuCtxPopCurrent)(&current));
    destroy(part);
    check_values("work of the green context", values, 12);
    CUDA_OK(cudaEventQuery(made_here));
    CUDA_OK(cudaEventRecord(made_here, nullptr));
    CUDA_OK(cudaEventSynchronize(made_here));
    add<<<(COUNT + 255) / 256, 256>>>(values, COUNT, 1);
    LAUNCH_OK();
    check_values("its variable and memory are the primary context's", values, 14);
    CUDA_OK(cudaEventDestroy(made_here));
    CUDA_OK(cudaFree(values));
}

// A green context's resource can be split again.
static void check_nested(unsigned least) {
    CUdevResource whole = device_resource(), part, rest, inner;
    unsigned groups = 1;
    CU_OK(CU(cuDevSmResourceSplitByCount)(&part, &groups, &whole, &rest, 0, 2 * least));
    Green outer = make(&part, 1);
    CU_OK(CU(cuGreenCtxGetDevResource)(outer.green, &part, CU_DEV_RESOURCE_TYPE_SM));
    groups = 1;
    CU_OK(CU(cuDevSmResourceSplitByCount)(&inner, &groups, &part, &rest, 0, least));
    Green nested = make(&inner, 1);
    check_equal("multiprocessors of a part of a part", inner.sm.smCount, sm_count(nested.green));
    check_here("a part of %u multiprocessors, of which a part has %u and used %zu", part.sm.smCount, inner.sm.smCount,
               places_of(nested.stream).size());
    destroy(&nested);
    destroy(&outer);
}

#define ERROR(call) check_here("%s: %d", #call, (int) (call))

// The results of these calls are compared with the driver's own.
static void show_errors(unsigned least) {
    CUdevResource whole = device_resource(), parts[4], rest, nothing = {};
    CUdevResourceDesc desc;
    CUgreenCtx green;
    CUcontext context;
    CUstream stream;
    unsigned groups = 2;
    auto split = CU(cuDevSmResourceSplitByCount);
    auto describe = CU(cuDevResourceGenerateDesc);
    auto create = CU(cuGreenCtxCreate);
    check_here("whole: %u, least %u, alignment %u", whole.sm.smCount, whole.sm.minSmPartitionSize,
               whole.sm.smCoscheduledAlignment);
    ERROR(CU(cuDeviceGetDevResource)(0, &rest, CU_DEV_RESOURCE_TYPE_INVALID));
    ERROR(CU(cuDeviceGetDevResource)(99, &rest, CU_DEV_RESOURCE_TYPE_SM));
    ERROR(CU(cuDeviceGetDevResource)(0, nullptr, CU_DEV_RESOURCE_TYPE_SM));
    for (unsigned flags = 0; flags < 4; flags++) { // driver 580 does not check others, and crashes
        for (unsigned count = 0; count <= whole.sm.smCount + 1; count += count < 20 ? 1 : 17) {
            groups = 4;
            memset(parts, 0, sizeof parts);
            memset(&rest, 0, sizeof rest);
            int result = split(parts, &groups, &whole, &rest, flags, count);
            check_here("split by %u, flags %u: %d, %u groups of %u, rest of type %d with %u", count, flags, result,
                       groups, parts[0].sm.smCount, (int) rest.type, rest.sm.smCount);
        }
    }
    groups = 0;
    ERROR(split(nullptr, &groups, &whole, nullptr, 0, least));
    check_here("possible groups: %u", groups);
    groups = 0;
    ERROR(split(parts, &groups, &whole, &rest, 0, least));
    groups = 1;
    ERROR(split(parts, nullptr, &whole, &rest, 0, least));
    ERROR(split(parts, &groups, nullptr, &rest, 0, least));
    ERROR(split(parts, &groups, &nothing, &rest, 0, least));
    groups = 2;
    ERROR(split(parts, &groups, &whole, &rest, 0, least));
    groups = 1;
    ERROR(split(&parts[2], &groups, &parts[0], nullptr, 0, least));
    groups = 1;
    ERROR(split(&parts[2], &groups, &whole, nullptr, 0, least));
    ERROR(describe(nullptr, parts, 1));
    ERROR(describe(&desc, nullptr, 1)); // driver 580 does not return for 0 resources
    ERROR(describe(&desc, &nothing, 1));
    CUdevResource twice[2] = {parts[0], parts[0]}, mixed[2] = {parts[0], parts[2]}, wholes[2] = {whole, parts[0]};
    ERROR(describe(&desc, twice, 2));
    ERROR(describe(&desc, mixed, 2));
    ERROR(describe(&desc, wholes, 2));
    CU_OK(describe(&desc, parts, 2));
    ERROR(create(&green, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    ERROR(create(&green, desc, 0, 0));
    ERROR(create(&green, desc, 99, CU_GREEN_CTX_DEFAULT_STREAM));
    ERROR(create(nullptr, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    CU_OK(create(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    check_here("both parts: %u", sm_count(green));
    CU_OK(CU(cuCtxFromGreenCtx)(&context, green));
    ERROR(CU(cuCtxFromGreenCtx)(&context, nullptr));
    ERROR(CU(cuCtxFromGreenCtx)(nullptr, green));
    ERROR(CU(cuGreenCtxStreamCreate)(&stream, green, 0, 0));
    ERROR(CU(cuGreenCtxStreamCreate)(&stream, nullptr, CU_STREAM_NON_BLOCKING, 0));
    ERROR(CU(cuGreenCtxDestroy)(nullptr));
    CU_OK(CU(cuCtxPushCurrent)(context));
    CUgreenCtx of_stream;
    CUcontext with;
    ERROR(STREAM_CONTEXTS(CU_STREAM_PER_THREAD, &with, &of_stream));
    ERROR(cudaStreamCreate(&stream));
    CU_OK(CU(cuCtxPopCurrent)(&context));
    ERROR(CU(cuCtxDestroy)(context)); // last: what a success would do is open
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    CUDA_OK(cudaSetDevice(0));
    CUDA_OK(cudaFree(nullptr));
    CUdevResource whole = device_resource(), of_context, parts[2], rest;
    CUcontext primary;
    CU_OK(CU(cuCtxGetCurrent)(&primary));
    check_equal("multiprocessors of the device", check_attribute(cudaDevAttrMultiProcessorCount), whole.sm.smCount);
    CU_OK(CU(cuCtxGetDevResource)(primary, &of_context, CU_DEV_RESOURCE_TYPE_SM));
    check_equal("multiprocessors of the primary context", whole.sm.smCount, of_context.sm.smCount);
    unsigned least = whole.sm.minSmPartitionSize, groups = 2;
    if (whole.sm.smCount < 2 * least) { // a software GPU of few processors
        Green all = make(&whole, 1);
        check_equal("multiprocessors of the only part", whole.sm.smCount, sm_count(all.green));
        check_current(&all, primary);
        return check_pass("a green context of the whole device");
    }
    CU_OK(CU(cuDevSmResourceSplitByCount)(parts, &groups, &whole, &rest, 0, least));
    check_equal("groups", 2, groups);
    check_true("groups have the least size", parts[0].sm.smCount >= least && parts[1].sm.smCount >= least);
    Green green[2] = {make(&parts[0], 1), make(&parts[1], 1)};
    check_parts(green, parts[0].sm.smCount);
    unsigned long long ids[2];
    CU_OK(CU(cuGreenCtxGetId)(green[0].green, &ids[0]));
    CU_OK(CU(cuGreenCtxGetId)(green[1].green, &ids[1]));
    check_true("ids differ", ids[0] != ids[1]);
    destroy(&green[1]);
    check_current(&green[0], primary);
    check_nested(least);
    show_errors(least);
    return check_pass("green contexts of %d groups, nested, current, by events", 2);
}
