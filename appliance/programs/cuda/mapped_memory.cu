// Pinned memory that kernels access in place, by the Runtime API: flags, device pointers, attributes, atomics, small
// allocations, and a kernel that reads the host's latest writes. Skipped where devices cannot access host memory.
#include "check_cuda.h"

struct Totals {
    unsigned long long sum;
    unsigned int count;
    int largest;
};

__global__ void scale(const double *in, double *out, int count, double factor) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        out[i] = in[i] * factor;
    }
}

__global__ void total(const unsigned char *bytes, int count, Totals *totals) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        atomicAdd(&totals->sum, (unsigned long long) bytes[i]);
        atomicAdd(&totals->count, 1u);
        atomicMax(&totals->largest, (int) bytes[i]);
    }
}

__global__ void reverse_quads(uint4 *quads, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        uint4 quad = quads[i];
        quads[i] = make_uint4(quad.w, quad.z, quad.y, quad.x);
    }
}

template <typename T> static T *mapped(size_t count, unsigned int flags, T **as_device) {
    T *host = nullptr;
    CUDA_OK(cudaHostAlloc(&host, count * sizeof(T), cudaHostAllocMapped | flags));
    CUDA_OK(cudaHostGetDevicePointer(as_device, host, 0));
    return host;
}

static void check_attributes(char *host, char *as_device, const char *what) {
    cudaPointerAttributes attributes;
    CUDA_OK(cudaPointerGetAttributes(&attributes, what[0] == 'h' ? host : as_device));
    check_equal("type", cudaMemoryTypeHost, attributes.type);
    check_equal("device", 0, attributes.device);
    check_true("the device's pointer", attributes.devicePointer == as_device);
    check_true("the host's pointer", attributes.hostPointer == host);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    CUDA_OK(cudaSetDeviceFlags(cudaDeviceMapHost));
    cudaDeviceProp properties;
    CUDA_OK(cudaGetDeviceProperties(&properties, 0));
    check_equal("the property and the attribute", check_attribute(cudaDevAttrCanMapHostMemory),
                properties.canMapHostMemory);
    if (!properties.canMapHostMemory) {
        check_unsupported("the device cannot map host memory");
    }
    const int count = 60001;
    double *in_device, *out_device, *in = mapped(count, cudaHostAllocWriteCombined, &in_device);
    double *out = mapped(count, cudaHostAllocPortable, &out_device);
    unsigned int flags = 0;
    CUDA_OK(cudaHostGetFlags(&flags, in));
    check_true("the flags that were asked for", (flags & cudaHostAllocMapped) && (flags & cudaHostAllocWriteCombined));
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < count; i++) {
            in[i] = i * round;
        }
        scale<<<32, 128>>>(in_device, out_device, count, 0.5);
        LAUNCH_OK();
        CUDA_OK(cudaDeviceSynchronize());
        for (int i = 0; i < count; i++) {
            check_near("scaled in place", i, i * round * 0.5, out[i], 0);
        }
    }
    check_attributes((char *) (out + 5), (char *) (out_device + 5), "by the device's pointer");
    check_attributes((char *) (out + 5), (char *) (out_device + 5), "host");

    // Structures smaller than a page, next to each other; every block adds to the same structure.
    Totals *totals[40], *totals_device[40];
    for (int i = 0; i < 40; i++) {
        totals[i] = mapped(1, 0, &totals_device[i]);
        check_equal("pinned memory comes as zeros", 0, (long long) totals[i]->sum);
    }
    unsigned char *bytes_device, *bytes = mapped(count, 0, &bytes_device);
    unsigned long long sum = 0;
    for (int i = 0; i < count; i++) {
        bytes[i] = (unsigned char) (i * 7 % 251);
        sum += bytes[i];
    }
    total<<<16, 256>>>(bytes_device, count, totals_device[17]);
    LAUNCH_OK();
    cudaEvent_t done;
    CUDA_OK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    CUDA_OK(cudaEventRecord(done, 0));
    CUDA_OK(cudaEventSynchronize(done));
    for (int i = 0; i < 40; i++) {
        check_element("sums", i, i == 17 ? (long long) sum : 0, (long long) totals[i]->sum);
        check_element("counts", i, i == 17 ? count : 0, totals[i]->count);
        check_element("largest", i, i == 17 ? 250 : 0, totals[i]->largest);
        CUDA_OK(cudaFreeHost(totals[i]));
    }
    CUDA_OK(cudaEventDestroy(done));

    // Wide accesses; then fills and copies through either pointer.
    uint4 *quads_device, *quads = mapped(1000, 0, &quads_device);
    for (unsigned int i = 0; i < 1000; i++) {
        quads[i] = make_uint4(i, i + 1, i + 2, i + 3);
    }
    reverse_quads<<<4, 256>>>(quads_device, 1000);
    LAUNCH_OK();
    std::vector<uint4> copy = host_copy(quads_device, 1000);
    for (unsigned int i = 0; i < 1000; i++) {
        check_element("reversed", i, i + 3, copy[i].x);
        check_element("reversed", i, i, copy[i].w);
    }
    CUDA_OK(cudaMemset(quads_device, 0x5A, 1000 * sizeof(uint4)));
    CUDA_OK(cudaDeviceSynchronize());
    check_equal("filled", 0x5A5A5A5ALL, quads[999].w);
    unsigned int *device = device_array<unsigned int>(4000);
    CUDA_OK(cudaMemcpy(device, quads, 4000 * sizeof(unsigned int), cudaMemcpyDefault));
    CUDA_OK(cudaMemset(quads_device, 0, 4000));
    CUDA_OK(cudaMemcpy(quads_device, device, 4000 * sizeof(unsigned int), cudaMemcpyDeviceToDevice));
    CUDA_OK(cudaDeviceSynchronize());
    check_equal("copied back", 0x5A5A5A5ALL, quads[0].x);
    CUDA_OK(cudaFree(device));
    CUDA_OK(cudaFreeHost(quads));
    CUDA_OK(cudaFreeHost(bytes));
    CUDA_OK(cudaFreeHost(in));
    CUDA_OK(cudaFreeHost(out));
    return check_pass("%d values in place, 40 small allocations, fills and copies", count);
}
