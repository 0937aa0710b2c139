/* The linker of device code joins several texts into one image; the error log names missing or wrong parts. */
#include "check_driver.h"

#ifndef HAWSER_NVIDIA_HEADER
typedef struct CUlinkState_st *CUlinkState;
typedef enum { CU_JIT_INPUT_CUBIN = 0, CU_JIT_INPUT_PTX = 1 } CUjitInputType;
#define CU_JIT_MAX_REGISTERS ((CUjit_option) 0)
#define CU_JIT_OPTIMIZATION_LEVEL ((CUjit_option) 7)
#define cuLinkCreate cuLinkCreate_v2
#define cuLinkAddData cuLinkAddData_v2
#define cuLinkAddFile cuLinkAddFile_v2
CUresult cuLinkCreate(unsigned int numOptions, CUjit_option *options, void **optionValues, CUlinkState *stateOut);
CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                       unsigned int numOptions, CUjit_option *options, void **optionValues);
CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions,
                       CUjit_option *options, void **optionValues);
CUresult cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut);
CUresult cuLinkDestroy(CUlinkState state);
#endif

#define HEAD ".version 7.8\n.target sm_75\n.address_size 64\n"

/* A kernel that needs a function and a table from other files. */
static const char *kernel = HEAD
    ".extern .func (.param .b32 result) twist(.param .b32 value);\n"
    ".extern .global .align 4 .b32 table[4];\n"
    ".visible .entry twist_all(.param .u64 values, .param .u32 count) {\n"
    "    .reg .pred %p<2>;\n    .reg .b32 %r<12>;\n    .reg .b64 %rd<8>;\n"
    "    ld.param.u64 %rd1, [values];\n    ld.param.u32 %r1, [count];\n"
    "    mov.u32 %r2, %ctaid.x;\n    mov.u32 %r3, %ntid.x;\n    mov.u32 %r4, %tid.x;\n"
    "    mad.lo.s32 %r5, %r2, %r3, %r4;\n    setp.ge.s32 %p1, %r5, %r1;\n    @%p1 bra DONE;\n"
    "    cvta.to.global.u64 %rd2, %rd1;\n    mul.wide.s32 %rd3, %r5, 4;\n    add.s64 %rd4, %rd2, %rd3;\n"
    "    ld.global.u32 %r6, [%rd4];\n"
    "    {\n    .param .b32 given;\n    .param .b32 back;\n    st.param.b32 [given], %r6;\n"
    "    call (back), twist, (given);\n    ld.param.b32 %r7, [back];\n    }\n"
    "    and.b32 %r8, %r5, 3;\n    mul.wide.u32 %rd5, %r8, 4;\n    mov.u64 %rd6, table;\n    add.s64 %rd7, %rd6, %rd5;\n"
    "    ld.global.u32 %r9, [%rd7];\n    add.s32 %r10, %r7, %r9;\n    st.global.u32 [%rd4], %r10;\n"
    "DONE:\n    ret;\n}\n";

static const char *function =
    HEAD ".func (.param .b32 result) triple(.param .b32 value) {\n"
         "    .reg .b32 %r<3>;\n    ld.param.b32 %r1, [value];\n    mul.lo.s32 %r2, %r1, 3;\n"
         "    st.param.b32 [result], %r2;\n    ret;\n}\n"
         ".visible .func (.param .b32 result) twist(.param .b32 value) {\n"
         "    .reg .b32 %r<5>;\n    ld.param.b32 %r1, [value];\n"
         "    {\n    .param .b32 given;\n    .param .b32 back;\n    st.param.b32 [given], %r1;\n"
         "    call (back), triple, (given);\n    ld.param.b32 %r2, [back];\n    }\n"
         "    add.s32 %r3, %r2, 1;\n    st.param.b32 [result], %r3;\n    ret;\n}\n";

/* Has a private function with the same name as a private function of another file. */
static const char *table =
    HEAD ".visible .global .align 4 .b32 table[4] = {100, 200, 300, 400};\n"
         ".func (.param .b32 result) triple(.param .b32 value) {\n"
         "    .reg .b32 %r<2>;\n    ld.param.b32 %r1, [value];\n    st.param.b32 [result], %r1;\n    ret;\n}\n";

static char error_log[8192], info_log[8192];

static CUlinkState create(void) {
    static CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,   CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                                     CU_JIT_INFO_LOG_BUFFER,    CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                                     CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_MAX_REGISTERS};
    static void *values[6];
    CUlinkState state;
    values[0] = error_log;
    values[1] = (void *) (uintptr_t) sizeof error_log;
    values[2] = info_log;
    values[3] = (void *) (uintptr_t) sizeof info_log;
    values[4] = (void *) (uintptr_t) 3;
    values[5] = (void *) (uintptr_t) 64;
    error_log[0] = 0;
    CU_OK(cuLinkCreate(6, options, values, &state));
    return state;
}

static CUresult add(CUlinkState state, const char *text, const char *name) {
    return cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *) (uintptr_t) text, strlen(text) + 1, name, 0, NULL, NULL);
}

static void run(CUmodule module) {
    enum { COUNT = 1000 };
    int values[COUNT], count = COUNT;
    for (int i = 0; i < COUNT; i++) {
        values[i] = i;
    }
    CUdeviceptr device = check_device(values, sizeof values);
    CHECK_LAUNCH(check_function(module, "twist_all"), 4, 256, 0, NULL, &device, &count);
    CU_OK(cuMemcpyDtoH(values, device, sizeof values));
    for (int i = 0; i < COUNT; i++) {
        check_element("twisted", i, 3 * i + 1 + 100 * (i % 4 + 1), values[i]);
    }
    CU_OK(cuMemFree(device));
}

static void several(void) {
    CUlinkState state = create();
    CUmodule module, again;
    void *image = NULL;
    size_t bytes = 0;
    CU_OK(add(state, kernel, "kernel.ptx"));
    CU_OK(add(state, table, "table.ptx"));
    CU_OK(add(state, function, "function.ptx"));
    CU_OK(cuLinkComplete(state, &image, &bytes));
    check_true("an image", image != NULL && bytes > 100);
    CU_OK(cuModuleLoadData(&module, image));
    /* A copy of exactly that many bytes works as well. */
    char *copy = check_memory(bytes + 1);
    memcpy(copy, image, bytes);
    CU_OK(cuLinkDestroy(state));
    run(module);
    CU_OK(cuModuleLoadData(&again, copy));
    free(copy);
    run(again);
    CUdeviceptr address;
    size_t size;
    int values[4];
    CU_OK(cuModuleGetGlobal(&address, &size, module, "table"));
    check_equal("size of the table", sizeof values, (long long) size);
    CU_OK(cuMemcpyDtoH(values, address, sizeof values));
    check_equal("last of the table", 400, values[3]);
    CU_OK(cuModuleUnload(module));
    CU_OK(cuModuleUnload(again));
}

static void one_file(void) {
    CUlinkState state = create();
    CUmodule module;
    void *image;
    CU_OK(cuLinkAddFile(state, CU_JIT_INPUT_PTX, check_ptx_path("kernels.ptx"), 0, NULL, NULL));
    CU_OK(cuLinkComplete(state, &image, NULL));
    CU_OK(cuModuleLoadData(&module, image));
    CU_OK(cuLinkDestroy(state));
    int values[100], count = 100, addend = 9;
    memset(values, 0, sizeof values);
    CUdeviceptr device = check_device(values, sizeof values);
    CHECK_LAUNCH(check_function(module, "add_value"), 1, 128, 0, NULL, &device, &count, &addend);
    CU_OK(cuMemcpyDtoH(values, device, sizeof values));
    check_equal("added", 9, values[99]);
    CU_OK(cuMemFree(device));
    CU_OK(cuModuleUnload(module));
}

static void errors(void) {
    CUlinkState state = create();
    void *image;
    CUresult missing = add(state, kernel, "kernel.ptx");
    missing = missing != CUDA_SUCCESS ? missing : cuLinkComplete(state, &image, NULL);
    check_true("a missing function is an error", missing != CUDA_SUCCESS);
    check_true("the error log names the function", strstr(error_log, "twist") != NULL);
    CU_OK(cuLinkDestroy(state));
    /* CUDA rejects an invalid text when the program adds it; an error at the completion of the link is accepted as
     * well. */
    state = create();
    CUresult wrong = add(state, HEAD ".visible .entry broken( { nonsense; }\n", "broken.ptx");
    wrong = wrong != CUDA_SUCCESS ? wrong : cuLinkComplete(state, &image, NULL);
    check_equal("a wrong text", CUDA_ERROR_INVALID_PTX, wrong);
    check_true("the error log is not empty", error_log[0] != 0);
    CU_OK(cuLinkDestroy(state));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    several();
    one_file();
    errors();
    return check_pass("three texts, a file, a missing function, a wrong text");
}
