/* Device printf, with a file in place of stdout. */
#include "check_driver.h"

#include <fcntl.h>

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    CUmodule module = check_module("printf.ptx");
    CUfunction function = check_function(module, "print_lines");
    CUdeviceptr text = check_device("text from memory", 17);
    int number = 4711;
    double value = -2.5;
    char path[] = "/tmp/hawser-printf-XXXXXX";
    fflush(stdout);
    int saved = dup(1), file = mkstemp(path);
    check_true("a file to catch the output", saved >= 0 && file >= 0);
    unlink(path);
    dup2(file, 1);
    CHECK_LAUNCH(function, 1, 32, 0, NULL, &number, &value, &text);
    CU_OK(cuCtxSynchronize());
    fflush(stdout);
    dup2(saved, 1);
    close(saved);
    char got[1024] = "", expected[1024];
    ssize_t length = pread(file, got, sizeof(got) - 1, 0);
    close(file);
    check_true("some output", length > 0);
    int at = snprintf(expected, sizeof(expected), "device says %d %.3f %s\n", number, value, "text from memory");
    snprintf(expected + at, sizeof(expected) - (size_t) at, "block %u of %u: 64-bit %lld, hexadecimal %08x, 100%%\n",
             0u, 1u, (long long) number << 40, (unsigned int) number);
    check_text("output", expected, got);
    CU_OK(cuMemFree(text));
    return check_pass("2 lines");
}
