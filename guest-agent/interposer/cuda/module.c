/* The functions of modules, and the function of libraries that takes an image by its address. */
#include "module.h"

#include <stdlib.h>

HWS_EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                                       CUjit_option *options, void **optionValues) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(module != NULL && image != NULL);
    hws_jit_options_t jit;
    HWS_TRY(hws_jit_options_parse(numOptions, options, optionValues, &jit));
    return hws_module_load_pointer(image, &jit, false, module);
}

HWS_EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

HWS_EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin) {
    return cuModuleLoadDataEx(module, fatCubin, 0, NULL, NULL);
}

HWS_EXPORT CUresult cuModuleLoad(CUmodule *module, const char *fname) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(module != NULL && fname != NULL && *fname != '\0');
    void *image;
    uint64_t bytes;
    HWS_TRY(hws_image_read_file(fname, &image, &bytes));
    CUresult result = hws_module_load(image, bytes, NULL, false, module);
    free(image);
    return result;
}

HWS_EXPORT CUresult cuModuleUnload(CUmodule hmod) {
    HWS_ENTER_OBJECT(HWS_KIND_MODULE, hmod);
    HWS_ENTER_CONTEXT();
    return hws_module_unload(hmod);
}

HWS_EXPORT CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(mode != NULL);
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name) {
    HWS_ENTER_OBJECT(HWS_KIND_MODULE, hmod);
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(hfunc != NULL && name != NULL && *name != '\0');
    return hws_module_function(hmod, name, hfunc);
}

HWS_EXPORT CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod) {
    HWS_ENTER_OBJECT(HWS_KIND_MODULE, mod);
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(count != NULL);
    return hws_module_functions(mod, NULL, 0, count);
}

HWS_EXPORT CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(functions != NULL); /* CUDA checks this before the module */
    HWS_ENTER_OBJECT(HWS_KIND_MODULE, mod);
    HWS_ENTER_CONTEXT();
    if (numFunctions == 0) {
        return CUDA_SUCCESS;
    }
    return hws_module_functions(mod, functions, numFunctions, NULL);
}

HWS_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name) {
    HWS_ENTER_OBJECT(HWS_KIND_MODULE, hmod);
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(name != NULL && *name != '\0' && (dptr != NULL || bytes != NULL));
    return hws_module_global(hmod, name, dptr, bytes);
}

HWS_EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                                      void **jitOptionsValues, unsigned int numJitOptions,
                                      CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                      unsigned int numLibraryOptions) {
    (void) libraryOptions; /* they say whether the program keeps the image, which is not needed after this load */
    (void) libraryOptionValues;
    (void) numLibraryOptions;
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(library != NULL && code != NULL);
    hws_jit_options_t jit;
    HWS_TRY(hws_jit_options_parse(numJitOptions, jitOptions, jitOptionsValues, &jit));
    return hws_module_load_pointer(code, &jit, true, (CUmodule *) library);
}
