// printf in kernels. A pipe replaces stdout and catches the output, which must equal the host's printf of the same
// formats.
#include "check_cuda.h"

#include <fcntl.h>
#include <set>
#include <string>
#include <unistd.h>

struct Formats {
    char text[2048];
};

__global__ void formats() {
    printf("int %d %5d|%-5d|%05d %i %u %x %X %o\n", -7, 42, 42, 42, 8, 3000000000u, 255, 255, 8);
    printf("long %lld %llu %llx %ld\n", -9000000000LL, 18000000000000000000ULL, 0x123456789abcdefULL, 5L);
    printf("double %f %.3f %10.2f %e %g %G %a\n", 1.5, -2.0625, 3.14159, 12345.678, 0.0001, 1e30, 1.0);
    printf("text %s %10s|%-6s| %c %%\n", "device", "right", "left", 'q');
    printf("none\n");
}

__global__ void threads() {
    if (threadIdx.x % 2 == 0) {
        printf("thread %d of block %d: %.2f\n", (int) threadIdx.x, (int) blockIdx.x, threadIdx.x * 0.25);
    }
}

static std::string expected_formats() {
    Formats made;
    int at = 0;
    at += snprintf(made.text + at, sizeof(made.text) - at, "int %d %5d|%-5d|%05d %i %u %x %X %o\n", -7, 42, 42, 42, 8,
                   3000000000u, 255, 255, 8);
    at += snprintf(made.text + at, sizeof(made.text) - at, "long %lld %llu %llx %ld\n", -9000000000LL,
                   18000000000000000000ULL, 0x123456789abcdefULL, 5L);
    at += snprintf(made.text + at, sizeof(made.text) - at, "double %f %.3f %10.2f %e %g %G %a\n", 1.5, -2.0625, 3.14159,
                   12345.678, 0.0001, 1e30, 1.0);
    at +=
        snprintf(made.text + at, sizeof(made.text) - at, "text %s %10s|%-6s| %c %%\n", "device", "right", "left", 'q');
    snprintf(made.text + at, sizeof(made.text) - at, "none\n");
    return made.text;
}

// Runs `action` with stdout redirected to a file and returns the output.
template <typename Action> static std::string caught(Action action) {
    char path[] = "/tmp/hawser-printf-XXXXXX";
    fflush(stdout);
    int file = mkstemp(path);
    int saved = dup(1);
    check_true("a file to catch the output", file >= 0 && saved >= 0);
    unlink(path);
    dup2(file, 1);
    action();
    fflush(stdout);
    dup2(saved, 1);
    close(saved);
    std::string text;
    char buffer[4096];
    lseek(file, 0, SEEK_SET);
    for (ssize_t n; (n = read(file, buffer, sizeof(buffer))) > 0;) {
        text.append(buffer, n);
    }
    close(file);
    return text;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    std::string text = caught([] {
        formats<<<1, 1>>>();
        LAUNCH_OK();
        CUDA_OK(cudaDeviceSynchronize());
    });
    check_text("formats", expected_formats().c_str(), text.c_str());

    text = caught([] {
        threads<<<3, 8>>>();
        LAUNCH_OK();
        CUDA_OK(cudaStreamSynchronize(0));
    });
    std::set<std::string> lines, expected;
    for (size_t at = 0; at < text.size();) {
        size_t end = text.find('\n', at);
        if (end == std::string::npos) {
            end = text.size();
        }
        lines.insert(text.substr(at, end - at));
        at = end + 1;
    }
    for (int block = 0; block < 3; block++) {
        for (int thread = 0; thread < 8; thread += 2) {
            char line[80];
            snprintf(line, sizeof(line), "thread %d of block %d: %.2f", thread, block, thread * 0.25);
            expected.insert(line);
        }
    }
    check_equal("lines of all threads", (long long) expected.size(), (long long) lines.size());
    for (const std::string &line : expected) {
        check_true(line.c_str(), lines.count(line) == 1);
    }
    return check_pass("%zu lines by threads, 5 lines of formats", lines.size());
}
