/*
 * Device code of a megabyte and more, loaded twice, and once with another text: equal content need not be sent again,
 * in this process or the next.
 */
#include "check_driver.h"

#define PADDING_LINE "// a line that makes the code longer and does nothing else, as the tables of large libraries do\n"

/* kernels.ptx followed by the given KiB of comments; `last` is the last line. */
static char *large(const char *last, size_t kib) {
    char *code = check_ptx("kernels.ptx");
    size_t at = strlen(code), line = strlen(PADDING_LINE), padding = kib << 10;
    char *text = check_memory(at + padding + line + strlen(last) + 2);
    memcpy(text, code, at);
    free(code);
    for (size_t end = at + padding; at < end; at += line) {
        memcpy(text + at, PADDING_LINE, line);
    }
    memcpy(text + at, last, strlen(last));
    return text;
}

static void use(const char *text, int value) {
    CUmodule module;
    CU_OK(cuModuleLoadData(&module, text));
    CUfunction add = check_function(module, "add_value");
    int got = 40, n = 1;
    CUdeviceptr memory = check_device(&got, sizeof(got));
    CHECK_LAUNCH(add, 1, 32, 0, NULL, &memory, &n, &value);
    CU_OK(cuMemcpyDtoH(&got, memory, sizeof(got)));
    check_equal("computed by the large image", 40 + value, got);
    CU_OK(cuMemFree(memory));
    CU_OK(cuModuleUnload(module));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    size_t kib = (size_t) check_option("--kib", 2048);
    char *first = large("// one\n", kib), *second = large("// two\n", kib / 2);
    use(first, 1);
    use(second, 2);
    use(first, 3);
    free(first);
    free(second);
    return check_pass("large images, one of them twice");
}
