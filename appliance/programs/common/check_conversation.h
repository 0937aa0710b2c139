// A conversation of the host with a running kernel, for memory that both use: flags in both directions, and data behind
// a flag.
#ifndef HAWSER_PROGRAMS_CHECK_CONVERSATION_H
#define HAWSER_PROGRAMS_CHECK_CONVERSATION_H

#include "check_cuda.h"

#include <atomic>

static const int WORDS = 8;

// Sums the words that the host writes before each turn, and announces the answer by the same number.
__global__ void answer(volatile int *turn, volatile int *question, volatile int *reply, volatile int *done, int turns) {
    for (int i = 1; i <= turns; i++) {
        while (*turn != i) {
        }
        __threadfence_system();
        int sum = 0;
        for (int word = 0; word < WORDS; word++) {
            sum += question[word];
        }
        *reply = sum;
        __threadfence_system();
        *done = i;
    }
}

// The number of integers that a conversation needs.
static size_t conversation_size(size_t apart) {
    return 3 * apart + WORDS;
}

// The flags and the data lie `apart` integers from each other, in one page or in several.
static void converse(int *words, size_t apart) {
    const int turns = 20;
    volatile int *turn = words, *reply = words + apart, *done = words + 2 * apart, *question = words + 3 * apart;
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    answer<<<1, 1, 0, stream>>>(turn, question, reply, done, turns);
    LAUNCH_OK();
    for (int i = 1; i <= turns; i++) {
        for (int word = 0; word < WORDS; word++) {
            question[word] = 1000 * i + word;
        }
        std::atomic_thread_fence(std::memory_order_seq_cst);
        *turn = i;
        while (*done != i) {
        }
        std::atomic_thread_fence(std::memory_order_seq_cst);
        check_element("reply", i, WORDS * 1000 * i + WORDS * (WORDS - 1) / 2, *reply);
    }
    CUDA_OK(cudaStreamSynchronize(stream));
    check_equal("done", turns, *done);
    CUDA_OK(cudaStreamDestroy(stream));
}

#endif
