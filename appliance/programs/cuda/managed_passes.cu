// Passes of the host through managed memory, of which the library brings pages ahead: passes of reads, updates and
// writes, in jumps, by several threads and over several arrays; kernels and frees in the middle of a pass. Work of several
// streams sees what the host has written.
#include "check_cuda.h"

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

static const size_t PAGE_WORDS = 1024, PAGES = 12000;
static const int THREADS = 4, ROUNDS = 12;

// Word 0 of each page counts kernels; word 1 counts updates of the host.
__global__ void count(int *words, size_t pages) {
    size_t page = blockIdx.x * (size_t) blockDim.x + threadIdx.x;
    if (page < pages) {
        words[page * PAGE_WORDS] += 1;
    }
}

__global__ void gather(const int *words, int *out, size_t pages) {
    size_t page = blockIdx.x * (size_t) blockDim.x + threadIdx.x;
    if (page < pages) {
        out[page] = words[page * PAGE_WORDS + 1];
    }
}

struct pages_t {
    int *words = nullptr;
    int kernels = 0;
    std::vector<int> updates = std::vector<int>(PAGES);

    pages_t() {
        CUDA_OK(cudaMallocManaged(&words, PAGES * PAGE_WORDS * sizeof(int)));
    }

    void launch() {
        count<<<(PAGES + 255) / 256, 256>>>(words, PAGES);
        LAUNCH_OK();
        kernels++;
    }

    void run() {
        launch();
        CUDA_OK(cudaDeviceSynchronize());
    }

    void read(size_t page) const {
        check_element("kernels of the page", (long) page, kernels, words[page * PAGE_WORDS]);
        check_element("updates of the page", (long) page, updates[page], words[page * PAGE_WORDS + 1]);
    }

    void update(size_t page) {
        words[page * PAGE_WORDS + 1] += 1;
        updates[page]++;
    }

    void write(size_t page) {
        words[page * PAGE_WORDS + 1] = ++updates[page];
    }

    void read_all() const {
        for (size_t page = 0; page < PAGES; page++) {
            read(page);
        }
    }

    // What the device sees.
    void check_device() const {
        int *device;
        std::vector<int> seen(PAGES);
        CUDA_OK(cudaMalloc(&device, PAGES * sizeof(int)));
        gather<<<(PAGES + 255) / 256, 256>>>(words, device, PAGES);
        LAUNCH_OK();
        CUDA_OK(cudaMemcpy(seen.data(), device, PAGES * sizeof(int), cudaMemcpyDeviceToHost));
        CUDA_OK(cudaFree(device));
        for (size_t page = 0; page < PAGES; page++) {
            check_element("updates that the device sees", (long) page, updates[page], seen[page]);
        }
    }

    void release() {
        CUDA_OK(cudaFree(words));
    }
};

static void whole_passes() {
    pages_t pages;
    for (size_t page = 0; page < PAGES; page++) {
        pages.write(page);
    }
    pages.run();
    pages.read_all();
    for (size_t page = 0; page < PAGES; page++) {
        pages.update(page);
    }
    pages.run();
    for (size_t page = 0; page < PAGES; page++) {
        pages.update(page);
    }
    pages.check_device();
    pages.run();
    for (size_t page = 0; page < PAGES; page++) {
        pages.write(page);
    }
    pages.check_device();
    for (size_t page = PAGES; page-- > 0;) {
        pages.read(page);
    }
    pages.release();
}

// A pass that begins to write, or ends to, on its way; and one that leaves pages out.
static void changing_passes() {
    pages_t pages;
    for (int round = 0; round < ROUNDS; round++) {
        pages.run();
        size_t from = PAGES * (round % 3) / 4, to = from + PAGES / 4;
        for (size_t page = round % 2; page < PAGES; page += 1 + round % 5) {
            if (page >= from && page < to) {
                pages.update(page);
            } else {
                pages.read(page);
            }
        }
        pages.check_device();
    }
    pages.release();
}

static void jumps(unsigned seed) {
    std::mt19937 random(seed);
    pages_t pages;
    for (int round = 0; round < ROUNDS; round++) {
        pages.run();
        for (int jump = 0; jump < 40; jump++) {
            size_t first = random() % PAGES, last = std::min(PAGES, first + random() % 2000);
            for (size_t page = first; page < last; page++) {
                jump % 3 == 0 ? pages.update(page) : pages.read(page);
            }
        }
        if (round % 3 == 0) {
            pages.check_device();
        }
    }
    pages.read_all();
    pages.release();
}

// Work begins while pages are on their way.
static void work_in_passes(unsigned seed) {
    std::mt19937 random(seed);
    pages_t pages;
    for (int round = 0; round < 10 * ROUNDS; round++) {
        size_t last = random() % PAGES;
        for (size_t page = 0; page < last; page += 1 + 63 * (round % 2)) {
            round % 4 < 2 ? pages.update(page) : pages.read(page);
        }
        switch (round % 3) {
            case 0:
                pages.run();
                break;
            case 1:
                pages.launch();
                CUDA_OK(cudaStreamSynchronize(nullptr));
                break;
            default:
                pages.launch();
                pages.launch();
                CUDA_OK(cudaDeviceSynchronize());
        }
        pages.read(random() % PAGES);
    }
    pages.check_device();
    pages.read_all();
    pages.release();
}

// All threads pass all pages. Each has words of its own.
static void threads_in_one_block() {
    pages_t pages;
    for (int round = 1; round <= 4; round++) {
        pages.run();
        std::vector<std::thread> threads;
        for (int thread = 0; thread < THREADS; thread++) {
            threads.emplace_back([&pages, thread, round] {
                size_t start = round % 2 == 0 ? 0 : PAGES / THREADS * (size_t) thread;
                for (size_t i = 0; i < PAGES; i++) {
                    size_t page = (start + i) % PAGES;
                    pages.read(page);
                    int *own = pages.words + page * PAGE_WORDS + 100 + thread;
                    check_element("rounds of a thread", (long) page, round - 1, *own);
                    *own += 1;
                }
            });
        }
        for (std::thread &thread : threads) {
            thread.join();
        }
    }
    pages.run();
    for (size_t page = 0; page < PAGES; page++) {
        for (int thread = 0; thread < THREADS; thread++) {
            check_element("updates of a thread", (long) page, 4, pages.words[page * PAGE_WORDS + 100 + thread]);
        }
    }
    pages.release();
}

// One thread launches while the others pass. They see a page before or after each kernel.
static void launches_beside_passes() {
    pages_t pages;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < THREADS - 1; thread++) {
        threads.emplace_back([&pages, thread] {
            for (size_t page = 0; page < PAGES; page++) {
                volatile int *word = pages.words + page * PAGE_WORDS;
                int seen = word[0];
                check_true("a page has been counted too often", seen >= 0 && seen <= ROUNDS);
                word[100 + thread] = (int) page;
            }
        });
    }
    for (int round = 0; round < ROUNDS; round++) {
        pages.run();
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    CUDA_OK(cudaDeviceSynchronize());
    for (size_t page = 0; page < PAGES; page++) {
        for (int thread = 0; thread < THREADS - 1; thread++) {
            check_element("words of a thread", (long) page, (int) page, pages.words[page * PAGE_WORDS + 100 + thread]);
        }
    }
    pages.read_all();
    pages.release();
}

static void several_arrays() {
    std::vector<pages_t> arrays(3);
    for (pages_t &pages : arrays) {
        pages.run();
    }
    for (size_t page = 0; page < PAGES; page++) {
        arrays[0].read(page);
        arrays[1].update(page);
        arrays[2].write(page);
    }
    for (pages_t &pages : arrays) {
        pages.check_device();
        pages.read_all();
        pages.release();
    }
}

static void frees_in_passes(unsigned seed) {
    std::mt19937 random(seed);
    for (int round = 0; round < 5 * ROUNDS; round++) {
        pages_t pages;
        if (round % 2 == 0) {
            check_element("a new block's word", round, 0, pages.words[random() % PAGES * PAGE_WORDS]);
        }
        pages.run();
        for (size_t page = 0, last = random() % 3000; page < last; page++) {
            round % 3 == 0 ? pages.update(page) : pages.read(page);
        }
        pages.release();
    }
}

// CUDA refuses the launch. What the host function has written is not lost.
static void launch_in_a_host_function() {
    pages_t pages;
    pages.run();
    cudaHostFn_t write_and_launch = [](void *argument) {
        pages_t *all = (pages_t *) argument;
        all->write(1);
        count<<<1, 1>>>(all->words, 1);
        check_true("a launch in a host function is refused", cudaGetLastError() == cudaErrorNotPermitted);
    };
    CUDA_OK(cudaLaunchHostFunc(nullptr, write_and_launch, &pages));
    CUDA_OK(cudaDeviceSynchronize());
    pages.check_device();
    pages.read_all();
    pages.release();
}

__global__ void wait_for(volatile int *flag, int value) {
    while (*flag != value) {
    }
}

// Each stream's work sees what the host has written before, also while work of another stream waits for the host.
static void streams_after_writes() {
    enum { STREAMS = 6, OUT = STREAMS + 1 };
    pages_t pages;
    int *flag, *out;
    cudaStream_t streams[STREAMS];
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA_OK(cudaMallocManaged(&flag, sizeof(int)));
    CUDA_OK(cudaMalloc(&out, OUT * sizeof(int)));
    for (cudaStream_t &stream : streams) {
        CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    }
    const size_t last = PAGES - 1;
    int *word = pages.words + last * PAGE_WORDS + 1;
    CUDA_OK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal));
    gather<<<1, 1, 0, streams[0]>>>(word - 1, out + STREAMS, 1);
    CUDA_OK(cudaStreamEndCapture(streams[0], &graph));
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    for (int round = 1; round <= ROUNDS; round++) {
        for (size_t page = round % 2 == 0 ? 0 : PAGES - 10; page < PAGES; page++) {
            pages.write(page);
        }
        *flag = 0;
        if (round % 3 != 0) { // this stream waits, and the others' work must not begin too early either
            wait_for<<<1, 1, 0, streams[0]>>>(flag, round);
        }
        gather<<<1, 1, 0, streams[1]>>>(word - 1, out + 1, 1);
        switch (round % 4) { // the second to come is in a stream that has no other work
            case 0:
                CUDA_OK(cudaMemcpyAsync(out + STREAMS, word, sizeof(int), cudaMemcpyDeviceToDevice, streams[2]));
                break;
            case 1:
                CUDA_OK(cudaGraphLaunch(exec, streams[2]));
                break;
            default:
                gather<<<1, 1, 0, streams[2]>>>(word - 1, out + STREAMS, 1);
        }
        for (int i = 2; i < STREAMS; i++) {
            gather<<<1, 1, 0, streams[i]>>>(word - 1, out + i, 1);
        }
        LAUNCH_OK();
        check_equal("the host's own word while work runs", pages.updates[last], *word);
        *flag = round;
        CUDA_OK(cudaDeviceSynchronize());
        std::vector<int> seen = host_copy(out, OUT);
        for (int i = 1; i < OUT; i++) {
            check_element("what a stream saw", i, pages.updates[last], seen[i]);
        }
    }
    pages.check_device();
    CUDA_OK(cudaGraphExecDestroy(exec));
    CUDA_OK(cudaGraphDestroy(graph));
    for (cudaStream_t stream : streams) {
        CUDA_OK(cudaStreamDestroy(stream));
    }
    CUDA_OK(cudaFree(out));
    CUDA_OK(cudaFree(flag));
    pages.release();
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    whole_passes();
    changing_passes();
    jumps(1);
    work_in_passes(2);
    threads_in_one_block();
    launches_beside_passes();
    several_arrays();
    frees_in_passes(3);
    launch_in_a_host_function();
    streams_after_writes();
    return check_pass("%zu pages", PAGES);
}
