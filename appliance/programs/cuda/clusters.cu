// Launches in clusters of blocks: distributed shared memory, occupancy of clusters, and (with tensor maps) a tile that
// the device's copy engine loads into shared memory. A device without clusters must state so by its attribute and
// refuse them.
#include "check_cuda.h"

#include <cooperative_groups.h>
#include <cuda.h>

namespace cg = cooperative_groups;

static const int BLOCKS = 8, CLUSTER = 4, THREADS = 64;

// Each block sums the shared memory of its neighbour in the cluster.
__global__ void neighbours(int *sums) {
#if __CUDA_ARCH__ >= 900
    __shared__ int own[THREADS];
    cg::cluster_group cluster = cg::this_cluster();
    own[threadIdx.x] = blockIdx.x * THREADS + threadIdx.x;
    cluster.sync();
    const int *other = cluster.map_shared_rank(own, (cluster.block_rank() + 1) % cluster.num_blocks());
    if (threadIdx.x == 0) {
        int sum = 0;
        for (int i = 0; i < THREADS; i++) {
            sum += other[i];
        }
        sums[blockIdx.x] = sum;
    }
    cluster.sync();
#else
    sums[blockIdx.x] = -1;
#endif
}

static const int TILE = 16, SIDE = 64;

__global__ void load_tile(const __grid_constant__ CUtensorMap map, float *out, int x, int y) {
#if __CUDA_ARCH__ >= 900
    __shared__ alignas(128) float tile[TILE * TILE];
    __shared__ alignas(8) unsigned long long barrier;
    unsigned bar = (unsigned) __cvta_generic_to_shared(&barrier), to = (unsigned) __cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"((unsigned) sizeof tile)
                     : "memory");
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
                "r"(to),
            "l"(&map), "r"(x), "r"(y), "r"(bar)
            : "memory");
    }
    __syncthreads();
    unsigned done = 0;
    while (!done) {
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(bar)
                     : "memory");
    }
    out[threadIdx.x] = tile[threadIdx.x];
#else
    out[threadIdx.x] = map.opaque[0] + x + y;
#endif
}

static void tensor_tile() {
    typedef CUresult (*encode_t)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                                 const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                                 CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    CUDA_OK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
    check_true("cuTensorMapEncodeTiled is there", entry != nullptr);
    std::vector<float> matrix(SIDE * SIDE);
    for (int i = 0; i < SIDE * SIDE; i++) {
        matrix[i] = (float) i;
    }
    float *device = device_copy(matrix), *out = device_array<float>(TILE * TILE);
    alignas(64) CUtensorMap map;
    cuuint64_t dims[2] = {SIDE, SIDE}, strides[1] = {SIDE * sizeof(float)};
    cuuint32_t box[2] = {TILE, TILE}, steps[2] = {1, 1};
    check_equal("encoding", CUDA_SUCCESS,
                ((encode_t) entry)(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, device, dims, strides, box, steps,
                                   CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                   CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    check_equal("a rank of 6", CUDA_ERROR_INVALID_VALUE,
                ((encode_t) entry)(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 6, device, dims, strides, box, steps,
                                   CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                   CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    load_tile<<<1, TILE * TILE>>>(map, out, 24, 40);
    LAUNCH_OK();
    std::vector<float> tile = host_copy(out, TILE * TILE);
    for (int i = 0; i < TILE * TILE; i++) {
        check_element("tile", i, (40 + i / TILE) * SIDE + 24 + i % TILE, (long long) tile[i]);
    }
    CUDA_OK(cudaFree(device));
    CUDA_OK(cudaFree(out));
}

// The driver's immediate result: for a direct call, in a capture and for a node of a graph.
static void refusals(cudaLaunchConfig_t config, int *sums) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaStreamCaptureStatus status;
    CUDA_OK(cudaStreamCreate(&stream));
    config.stream = stream;
    cudaLaunchAttribute attribute = config.attrs[0];
    config.attrs = &attribute;
    const unsigned partly_zero[][3] = {{0, 1, 1}, {CLUSTER, 0, 0}, {1, 1, 0}},
                   wrong[][3] = {{3, 1, 1}, {1, 2, 1}, {16, 1, 1}};
    for (int i = 0; i < 6; i++) {
        const unsigned *dim = i < 3 ? partly_zero[i] : wrong[i - 3];
        attribute.val.clusterDim.x = dim[0];
        attribute.val.clusterDim.y = dim[1];
        attribute.val.clusterDim.z = dim[2];
        CUDA_IS(cudaErrorInvalidClusterSize, cudaLaunchKernelEx(&config, neighbours, sums));
        cudaGetLastError();
        CUDA_OK(cudaStreamSynchronize(stream));
        // An error for the attribute leaves a capture valid; an error for the launch invalidates it.
        CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
        CUDA_IS(cudaErrorInvalidClusterSize, cudaLaunchKernelEx(&config, neighbours, sums));
        cudaGetLastError();
        CUDA_OK(cudaStreamIsCapturing(stream, &status));
        check_equal("the capture", i < 3 ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusInvalidated, status);
        CUDA_IS(i < 3 ? cudaSuccess : cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
        cudaGetLastError();
        if (i < 3) {
            CUDA_OK(cudaGraphDestroy(graph));
        }
    }
    cudaGraphNode_t node;
    void *arguments[] = {&sums};
    cudaKernelNodeParams params = {};
    params.func = (void *) neighbours;
    params.gridDim = config.gridDim;
    params.blockDim = config.blockDim;
    params.kernelParams = arguments;
    CUDA_OK(cudaGraphCreate(&graph, 0));
    CUDA_OK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
    cudaKernelNodeAttrValue value = {}, back = {};
    value.clusterDim.x = CLUSTER;
    value.clusterDim.y = value.clusterDim.z = 1;
    CUDA_OK(cudaGraphKernelNodeSetAttribute(node, cudaKernelNodeAttributeClusterDimension, &value));
    value.clusterDim.x = 3;
    CUDA_IS(cudaErrorInvalidClusterSize,
            cudaGraphKernelNodeSetAttribute(node, cudaKernelNodeAttributeClusterDimension, &value));
    cudaGetLastError();
    CUDA_OK(cudaGraphKernelNodeGetAttribute(node, cudaKernelNodeAttributeClusterDimension, &back));
    check_equal("the node's clusters stay", CLUSTER, back.clusterDim.x);
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaStreamDestroy(stream));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    int *sums = device_array<int>(BLOCKS);
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = CLUSTER;
    attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(BLOCKS);
    config.blockDim = dim3(THREADS);
    config.attrs = &attribute;
    config.numAttrs = 1;
    if (!check_attribute(cudaDevAttrClusterLaunch)) {
        CUDA_IS(cudaErrorNotSupported, cudaLaunchKernelEx(&config, neighbours, sums));
        cudaGetLastError();
        check_unsupported("cudaDevAttrClusterLaunch is 0");
    }
    CUDA_OK(cudaLaunchKernelEx(&config, neighbours, sums));
    std::vector<int> result = host_copy(sums, BLOCKS);
    for (int block = 0; block < BLOCKS; block++) {
        int neighbour = block / CLUSTER * CLUSTER + (block + 1) % CLUSTER;
        check_element("sum", block, neighbour * THREADS * THREADS + THREADS * (THREADS - 1) / 2, result[block]);
    }
    int clusters = 0, size = 0;
    CUDA_OK(cudaOccupancyMaxActiveClusters(&clusters, neighbours, &config));
    CUDA_OK(cudaOccupancyMaxPotentialClusterSize(&size, neighbours, &config));
    check_true("clusters fit the device", clusters >= 1);
    check_true("a portable size", size >= 8);
    tensor_tile();
    refusals(config, sums);
    CUDA_OK(cudaFree(sums));
    return check_pass("%d blocks in clusters of %d, occupancy, a tile of a tensor, refusals", BLOCKS, CLUSTER);
}
