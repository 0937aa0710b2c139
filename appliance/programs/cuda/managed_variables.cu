// __managed__ variables: host and kernels use them by name, at one address, with their initial values, before the first
// call, with copies of symbols, advice, flags between running kernels and the host, after a reset, and in system calls.
#include "check_cuda.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct Record {
    int id;
    double weight;
    char name[13];
};

static const int LONG = 3 * 65536 + 5;

__managed__ int counter = 7;
__managed__ char letters[5] = "wxyz";
__managed__ Record record = {3, 2.5, "a record"};
__managed__ unsigned char bytes[LONG];
__managed__ __align__(256) double aligned = 1.25;
static __managed__ long long hidden = 1LL << 40;
__managed__ int question, answers;
__device__ int plain = 100;

__global__ void touch(int *result) {
    counter += 1;
    letters[0] = 'A';
    record.weight *= 2;
    aligned += 1;
    hidden += plain;
    plain += 1;
    for (int i = 0; i < LONG; i++) {
        bytes[i] += 3;
    }
    *result = counter;
}

__global__ void add(int *value, int addend) {
    *value += addend;
}

__global__ void answer(int turns) {
    for (int i = 1; i <= turns; i++) {
        while (*(volatile int *) &question != i) {
        }
        *(volatile int *) &answers = 10 * i;
        __threadfence_system();
    }
}

static void launch_touch(int *result) {
    touch<<<1, 1>>>(result);
    LAUNCH_OK();
    CUDA_OK(cudaDeviceSynchronize());
}

static void initial_values() {
    check_equal("initial counter", 7, counter); // before any call
    check_true("initial letters", strcmp(letters, "wxyz") == 0);
    check_true("initial record", record.id == 3 && record.weight == 2.5 && strcmp(record.name, "a record") == 0);
    check_equal("initial hidden", 1LL << 40, hidden);
    check_near("initial aligned", 0, 1.25, aligned, 0);
    check_equal("alignment", 0, (long long) ((size_t) &aligned % 256));
    for (int i = 0; i < LONG; i++) {
        check_element("zeros", i, 0, bytes[i]);
    }
}

static void in_turn() {
    int *result = device_array<int>(1);
    for (int round = 0; round < 3; round++) {
        counter = 50 * round;
        letters[1] = (char) ('a' + round);
        record.weight = round;
        for (int i = 0; i < LONG; i++) {
            bytes[i] = (unsigned char) (i % 251 + round);
        }
        launch_touch(result);
        check_equal("counter", 50 * round + 1, counter);
        check_equal("as the kernel saw it", 50 * round + 1, host_copy(result, 1)[0]);
        check_true("letters", letters[0] == 'A' && letters[1] == 'a' + round && letters[2] == 'y');
        check_near("record", round, 2.0 * round, record.weight, 0);
        check_near("aligned", round, 2.25 + round, aligned, 0);
        for (int i = 0; i < LONG; i++) {
            check_element("bytes", i, (unsigned char) (i % 251 + round + 3), bytes[i]);
        }
    }
    check_equal("hidden", (1LL << 40) + 100 + 101 + 102, hidden);
    CUDA_OK(cudaFree(result));
}

static void symbols() {
    void *address = nullptr;
    size_t size = 0;
    int value = 0;
    CUDA_OK(cudaGetSymbolAddress(&address, counter));
    check_true("address of the symbol", address == &counter);
    CUDA_OK(cudaGetSymbolSize(&size, record));
    check_equal("size of the symbol", sizeof(Record), (long long) size);
    value = 70;
    CUDA_OK(cudaMemcpyToSymbol(counter, &value, sizeof value));
    check_equal("after a copy to the symbol", 70, counter);
    counter = 71;
    CUDA_OK(cudaMemcpyFromSymbol(&value, counter, sizeof value));
    check_equal("from the symbol", 71, value);
    CUDA_OK(cudaMemset(&counter, 0, sizeof counter));
    CUDA_OK(cudaDeviceSynchronize());
    check_equal("after a fill", 0, counter);
    CUDA_OK(cudaMemcpy(&record, letters, 4, cudaMemcpyDefault));
    CUDA_OK(cudaDeviceSynchronize());
    check_true("copy between variables", memcmp(&record, letters, 4) == 0);
    add<<<1, 1>>>(&counter, 5);
    LAUNCH_OK();
    CUDA_OK(cudaDeviceSynchronize());
    check_equal("by its address", 5, counter);
    cudaPointerAttributes attributes;
    CUDA_OK(cudaPointerGetAttributes(&attributes, &letters[1]));
    check_equal("type", cudaMemoryTypeManaged, attributes.type);
    check_equal("device", 0, attributes.device);
    check_true("one address", attributes.devicePointer == &letters[1] && attributes.hostPointer == &letters[1]);
    CUDA_IS(cudaErrorInvalidValue, cudaMemcpy(&value, &counter, sizeof value + 1, cudaMemcpyDeviceToHost));
    CUDA_IS(cudaErrorInvalidValue, cudaFree(&counter));
    CUDA_IS(cudaErrorInvalidValue, cudaHostRegister(&counter, sizeof counter, 0));
    cudaGetLastError();
}

static void hints() {
    cudaMemLocation device = {}, host = {};
    device.type = cudaMemLocationTypeDevice;
    host.type = cudaMemLocationTypeHost;
    counter = 8;
    CUDA_OK(cudaMemPrefetchAsync(&counter, sizeof counter, device, 0, nullptr));
    CUDA_OK(cudaMemPrefetchAsync(bytes + 5, 100, host, 0, nullptr));
    CUDA_IS(cudaErrorInvalidValue, cudaMemPrefetchAsync(&counter, sizeof counter + 1, device, 0, nullptr));
    CUDA_OK(cudaMemAdvise(bytes, LONG, cudaMemAdviseSetReadMostly, device));
    int read_mostly = 9;
    CUDA_OK(cudaMemRangeGetAttribute(&read_mostly, sizeof(int), cudaMemRangeAttributeReadMostly, bytes, LONG));
    check_equal("read mostly", 1, read_mostly);
    CUDA_OK(cudaMemAdvise(bytes, LONG, cudaMemAdviseUnsetReadMostly, device));
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreate(&stream));
    CUDA_OK(cudaStreamAttachMemAsync(stream, &counter, 0, cudaMemAttachSingle));
    CUDA_OK(cudaStreamAttachMemAsync(stream, bytes, LONG, cudaMemAttachGlobal));
    CUDA_IS(cudaErrorInvalidValue, cudaStreamAttachMemAsync(stream, bytes, 100, cudaMemAttachGlobal));
    cudaGetLastError();
    CUDA_OK(cudaStreamSynchronize(stream));
    CUDA_OK(cudaStreamDestroy(stream));
    check_equal("after hints", 8, counter);
}

static void system_calls() {
    FILE *file = tmpfile();
    check_true("a temporary file", file != nullptr);
    int *result = device_array<int>(1);
    launch_touch(result);
    const ssize_t written = write(fileno(file), bytes, LONG);
    if (written < 0 && errno == EFAULT) {
        check_unsupported("system calls cannot use managed memory for this user: see /dev/userfaultfd");
    }
    check_equal("written", LONG, written);
    launch_touch(result);
    check_equal("read", LONG, pread(fileno(file), bytes, LONG, 0));
    const unsigned char first = bytes[0];
    launch_touch(result);
    check_equal("after a kernel", (unsigned char) (first + 3), bytes[0]);
    CUDA_OK(cudaFree(result));
    fclose(file);
}

static void flags() {
    const int turns = 20;
    if (!check_attribute(cudaDevAttrConcurrentManagedAccess)) {
        return;
    }
    question = answers = 0;
    answer<<<1, 1>>>(turns);
    LAUNCH_OK();
    for (int i = 1; i <= turns; i++) {
        *(volatile int *) &question = i;
        while (*(volatile int *) &answers != 10 * i) {
        }
    }
    CUDA_OK(cudaDeviceSynchronize());
    check_equal("answers", 10 * turns, answers);
}

static void reset() {
    counter = 41;
    CUDA_OK(cudaDeviceReset());
    check_equal("after a reset", 41, counter);
    counter = 42;
    int *result = device_array<int>(1);
    launch_touch(result);
    check_equal("after a reset and a kernel", 43, counter);
    CUDA_OK(cudaFree(result));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    initial_values();
    in_turn();
    symbols();
    hints();
    flags();
    reset();
    system_calls();
    return check_pass("8 variables, %d bytes", LONG);
}
