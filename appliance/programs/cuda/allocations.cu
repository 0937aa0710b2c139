// cudaMalloc and cudaFree in random order and from several threads: blocks keep their content, freed memory is reused
// only after the work that uses it, and all free memory can be allocated again.
#include "check_cuda.h"

#include <thread>

static const size_t MIB = 1 << 20;

struct block {
    unsigned *memory;
    size_t words;
    unsigned value;
};

static unsigned next_random(unsigned &state, unsigned limit) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % limit;
}

// Small and large sizes, often at the borders where allocators change their way.
static size_t random_words(unsigned &state) {
    static const size_t borders[] = {512, 64 << 10, MIB, 2 * MIB, 4 * MIB, 64 * MIB};
    if (next_random(state, 3) == 0) {
        return (borders[next_random(state, 6)] + 4 * next_random(state, 3)) / 4 - 1;
    }
    return 1 + next_random(state, 1u << (6 + next_random(state, 15)));
}

__global__ void mark(unsigned *memory, size_t words, unsigned value) {
    memory[0] = memory[words - 1] = value;
    memory[words / 2] = value + 1;
}

__global__ void mark_late(unsigned *memory, unsigned value, long long clocks) {
    for (long long begin = clock64(); clock64() - begin < clocks;) {
    }
    memory[0] = value;
}

static void check_block(const block &each) {
    unsigned first, middle, last;
    CUDA_OK(cudaMemcpy(&first, each.memory, 4, cudaMemcpyDeviceToHost));
    CUDA_OK(cudaMemcpy(&middle, each.memory + each.words / 2, 4, cudaMemcpyDeviceToHost));
    CUDA_OK(cudaMemcpy(&last, each.memory + each.words - 1, 4, cudaMemcpyDeviceToHost));
    bool tiny = each.words < 3; // its three words coincide
    if ((!tiny && (first != each.value || last != each.value)) || middle != each.value + 1) {
        check_fail("a block of %zu words has lost its content: %u %u %u instead of %u", each.words, first, middle, last,
                   each.value);
    }
}

static void allocate_at_random(unsigned seed, int steps, size_t limit_bytes) {
    unsigned state = seed, value = seed * 1000000;
    std::vector<block> blocks;
    size_t bytes = 0;
    for (int step = 0; step < steps; step++) {
        size_t words = random_words(state);
        if (bytes + words * 4 <= limit_bytes && next_random(state, 100) < 60) {
            block made = {device_array<unsigned>(words), words, value += 2};
            mark<<<1, 1>>>(made.memory, words, made.value);
            LAUNCH_OK();
            blocks.push_back(made);
            bytes += words * 4;
        } else if (!blocks.empty()) {
            size_t at = next_random(state, blocks.size());
            check_block(blocks[at]);
            CUDA_OK(cudaFree(blocks[at].memory));
            bytes -= blocks[at].words * 4;
            blocks[at] = blocks.back();
            blocks.pop_back();
        }
    }
    for (const block &each : blocks) {
        check_block(each);
        CUDA_OK(cudaFree(each.memory));
    }
}

static void reuse_after_work() {
    static const size_t sizes[] = {4096, MIB, 8 * MIB};
    cudaStream_t streams[2];
    for (cudaStream_t &stream : streams) {
        CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    }
    for (int i = 0; i < 30; i++) {
        size_t bytes = sizes[i % 3];
        unsigned *before = device_array<unsigned>(bytes / 4);
        mark_late<<<1, 1, 0, streams[0]>>>(before, 1, 1000000);
        LAUNCH_OK();
        CUDA_OK(cudaFree(before));
        unsigned *after = device_array<unsigned>(bytes / 4);
        CUDA_OK(cudaMemsetAsync(after, 0x55, bytes, streams[1]));
        CUDA_OK(cudaDeviceSynchronize());
        check_element("reused", i, 0x55555555u, host_copy(after, 1)[0]);
        CUDA_OK(cudaFree(after));
    }
    for (cudaStream_t stream : streams) {
        CUDA_OK(cudaStreamDestroy(stream));
    }
}

static size_t free_bytes() {
    size_t available, total;
    CUDA_OK(cudaMemGetInfo(&available, &total));
    return available;
}

static size_t total_bytes() {
    size_t available, total;
    CUDA_OK(cudaMemGetInfo(&available, &total));
    return total;
}

static void use_all_memory() {
    std::vector<void *> blocks;
    for (size_t mib : {1, 3, 5, 7, 30}) {
        blocks.push_back(device_array<char>(mib * MIB));
    }
    for (void *each : blocks) {
        CUDA_OK(cudaFree(each));
    }
    size_t most = (free_bytes() - 8 * MIB - total_bytes() / 64) / (2 * MIB) * (2 * MIB); // drivers need some memory
    for (int i = 0; i < 3; i++) {
        void *all, *more = nullptr;
        CUDA_OK(cudaMalloc(&all, most)); // also the memory of the blocks before
        CUDA_IS(cudaErrorMemoryAllocation, cudaMalloc(&more, total_bytes() / 2));
        CUDA_IS(cudaErrorMemoryAllocation, cudaGetLastError());
        CUDA_OK(cudaFree(all));
        CUDA_OK(cudaMalloc(&more, 64 * MIB));
        CUDA_OK(cudaFree(more));
    }
}

static void refuse_wrong_frees() {
    char *memory = device_array<char>(4 * MIB), *small = device_array<char>(1000);
    CUDA_OK(cudaFree(nullptr));
    CUDA_IS(cudaErrorInvalidValue, cudaFree(memory + 512));
    CUDA_IS(cudaErrorInvalidValue, cudaFree(small + 512));
    CUDA_OK(cudaFree(memory));
    CUDA_OK(cudaFree(small));
    CUDA_IS(cudaErrorInvalidValue, cudaFree(memory));
    CUDA_IS(cudaErrorInvalidValue, cudaFree(small));
    CUDA_IS(cudaErrorInvalidValue, cudaMemset(memory, 0, 4));
    cudaGetLastError();
}

static void pitches() {
    for (size_t width : {1, 511, 512, 513, 5000}) {
        char *memory;
        size_t pitch;
        CUDA_OK(cudaMallocPitch(&memory, &pitch, width, 7));
        check_true("a pitch holds a row", pitch >= width && pitch % 512 == 0 && pitch - width < 512);
        std::vector<char> rows(width * 7), read(width * 7);
        for (size_t i = 0; i < rows.size(); i++) {
            rows[i] = (char) (i * 31);
        }
        CUDA_OK(cudaMemcpy2D(memory, pitch, rows.data(), width, width, 7, cudaMemcpyHostToDevice));
        CUDA_OK(cudaMemcpy2D(read.data(), width, memory, pitch, width, 7, cudaMemcpyDeviceToHost));
        check_true("rows of pitched memory", rows == read);
        CUDA_OK(cudaFree(memory));
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    size_t limit = free_bytes() / 8;
    limit = limit < 2048 * MIB ? limit : 2048 * MIB;
    allocate_at_random(1, 3000, limit);
    reuse_after_work();
    std::vector<std::thread> threads;
    for (unsigned seed = 2; seed < 6; seed++) {
        threads.emplace_back(allocate_at_random, seed, 500, limit / 4);
    }
    for (std::thread &each : threads) {
        each.join();
    }
    refuse_wrong_frees();
    pitches();
    use_all_memory();
    CUDA_OK(cudaDeviceReset());
    allocate_at_random(9, 100, limit);
    return check_pass("3,000 random allocations and frees, 4 threads, reuse after work, all memory three times");
}
