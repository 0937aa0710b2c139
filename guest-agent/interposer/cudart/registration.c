/*
 * Registrations of nvcc's host code, before main() and at dlopen(): fat binaries, kernels and variables. They send
 * nothing to the driver: the first use of something in an image loads the image, as in NVIDIA's runtime.
 * cuLibraryLoadData receives the wrapper unchanged; the driver knows both versions of it and derives the sizes.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"
#include "table.h"

typedef struct hws_symbol hws_symbol_t;

/* A registered fat binary; the program holds a pointer to it as a handle. Never freed: a late call may still use it. */
typedef struct hws_image {
    const void *wrapper;
    struct hws_image *next;     /* of all images; guarded by registryLock */
    _Atomic(CUlibrary) library; /* NULL until the first use */
    atomic_bool gone;           /* unregistered */
    hws_symbol_t *symbols;      /* its registrations; guarded by registryLock */
} hws_image_t;

typedef enum { HWS_SYMBOL_KERNEL, HWS_SYMBOL_VARIABLE, HWS_SYMBOL_MANAGED } hws_symbol_kind_t;

/* A kernel or variable of an image (name not NULL), or a kernel that cudaLibraryGetKernel gave out (name NULL). */
struct hws_symbol {
    hws_symbol_kind_t kind;
    const void *key;
    const char *name; /* in the program's read-only data: valid while the image is registered */
    hws_image_t *image;
    hws_symbol_t *next;
    _Atomic(CUkernel) kernel;
    CUlibrary library; /* of a published kernel */
    void **managedPointer;
    void *managedCopy; /* the variable between a reset of the device and the next load, guarded by registryLock */
    /* The variable's place in one context, guarded by registryLock. */
    CUcontext context;
    unsigned int generation;
    CUdeviceptr address;
    size_t bytes;
};

static hws_table_t *volatile symbolTable;
static hws_image_t *images;
static hws_symbol_t *published; /* kernels of libraries, guarded by registryLock */
static pthread_mutex_t registryLock = PTHREAD_MUTEX_INITIALIZER;

void **__cudaRegisterFatBinary(void *fatCubin);
void __cudaRegisterFatBinaryEnd(void **fatCubinHandle);
void __cudaUnregisterFatBinary(void **fatCubinHandle);
void __cudaRegisterFunction(void **fatCubinHandle, const char *hostFun, char *deviceFun, const char *deviceName,
                            int thread_limit, uint3 *tid, uint3 *bid, dim3 *bDim, dim3 *gDim, int *wSize);
void __cudaRegisterVar(void **fatCubinHandle, char *hostVar, char *deviceAddress, const char *deviceName, int ext,
                       size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **fatCubinHandle, void **hostVarPtrAddress, char *deviceAddress,
                              const char *deviceName, int ext, size_t size, int constant, int global);
void __cudaRegisterHostVar(void **fatCubinHandle, const char *deviceName, char *hostVar, size_t size);
void __cudaRegisterUnifiedTable(void **fatCubinHandle, void *table);
char __cudaInitModule(void **fatCubinHandle);

HWS_API void **__cudaRegisterFatBinary(void *fatCubin) {
    hws_image_t *image = calloc(1, sizeof *image);
    if (image == NULL) {
        /* Called before main(), where no error can be returned. */
        fprintf(stderr, "hawser: out of memory while registering device code\n");
        abort();
    }
    image->wrapper = fatCubin;
    pthread_mutex_lock(&registryLock);
    image->next = images;
    images = image;
    pthread_mutex_unlock(&registryLock);
    return (void **) image;
}

HWS_API void __cudaRegisterFatBinaryEnd(void **fatCubinHandle) {
    (void) fatCubinHandle; /* the first use loads the image */
}

static void hws_symbol_register(hws_image_t *image, hws_symbol_kind_t kind, const void *key, const char *name,
                                void **managedPointer) {
    hws_symbol_t *symbol = calloc(1, sizeof *symbol);
    bool put = false;
    if (symbol != NULL) {
        symbol->kind = kind;
        symbol->key = key;
        symbol->name = name;
        symbol->image = image;
        symbol->managedPointer = managedPointer;
        pthread_mutex_lock(&registryLock);
        put = hws_table_put(&symbolTable, key, symbol);
        symbol->next = image->symbols;
        image->symbols = symbol;
        pthread_mutex_unlock(&registryLock);
    }
    if (!put) {
        fprintf(stderr, "hawser: out of memory while registering device code\n");
        abort();
    }
}

HWS_API void __cudaRegisterFunction(void **fatCubinHandle, const char *hostFun, char *deviceFun, const char *deviceName,
                                    int thread_limit, uint3 *tid, uint3 *bid, dim3 *bDim, dim3 *gDim, int *wSize) {
    (void) deviceFun, (void) thread_limit, (void) tid, (void) bid, (void) bDim, (void) gDim, (void) wSize;
    hws_symbol_register((hws_image_t *) fatCubinHandle, HWS_SYMBOL_KERNEL, hostFun, deviceName, NULL);
}

HWS_API void __cudaRegisterVar(void **fatCubinHandle, char *hostVar, char *deviceAddress, const char *deviceName,
                               int ext, size_t size, int constant, int global) {
    (void) deviceAddress, (void) ext, (void) size, (void) constant, (void) global;
    hws_symbol_register((hws_image_t *) fatCubinHandle, HWS_SYMBOL_VARIABLE, hostVar, deviceName, NULL);
}

HWS_API void __cudaRegisterManagedVar(void **fatCubinHandle, void **hostVarPtrAddress, char *deviceAddress,
                                      const char *deviceName, int ext, size_t size, int constant, int global) {
    (void) deviceAddress, (void) ext, (void) size, (void) constant, (void) global;
    hws_symbol_register((hws_image_t *) fatCubinHandle, HWS_SYMBOL_MANAGED, hostVarPtrAddress, deviceName,
                        hostVarPtrAddress);
}

HWS_API void __cudaRegisterHostVar(void **fatCubinHandle, const char *deviceName, char *hostVar, size_t size) {
    /* Known deviation: the device would read the program's memory directly, which only unified memory offers. */
    static atomic_flag named = ATOMIC_FLAG_INIT;
    (void) fatCubinHandle, (void) deviceName, (void) hostVar, (void) size;
    (void) hws_error_unsupported("__cudaRegisterHostVar", &named);
}

HWS_API void __cudaRegisterUnifiedTable(void **fatCubinHandle, void *table) {
    /* Known deviation: unified function tables need a device that can jump into host code. */
    static atomic_flag named = ATOMIC_FLAG_INIT;
    (void) fatCubinHandle, (void) table;
    (void) hws_error_unsupported("__cudaRegisterUnifiedTable", &named);
}

/* Only the unload of the image itself reaches the driver. At exit the driver may already be gone, which is no error. */
HWS_API void __cudaUnregisterFatBinary(void **fatCubinHandle) {
    hws_image_t *image = (hws_image_t *) fatCubinHandle;
    if (image == NULL) {
        return;
    }
    pthread_mutex_lock(&registryLock);
    atomic_store(&image->gone, true);
    for (hws_symbol_t *symbol = image->symbols; symbol != NULL; symbol = symbol->next) {
        if (hws_table_find(&symbolTable, symbol->key) == symbol) {
            hws_table_put(&symbolTable, symbol->key, NULL);
        }
        if (symbol->kind == HWS_SYMBOL_MANAGED && *symbol->managedPointer != NULL) {
            hws_table_put(&symbolTable, *symbol->managedPointer, NULL); /* at exit the program may still use it */
        }
    }
    CUlibrary library = atomic_exchange(&image->library, NULL);
    pthread_mutex_unlock(&registryLock);
    if (library != NULL) {
        hws_kernel_retract(library);
        (void) cuLibraryUnload(library);
    }
}

/* Sets where the program's host code finds a managed variable, which is then also a key of the symbol. Lock held. */
static bool hws_managed_set(hws_symbol_t *symbol, void *place) {
    if (*symbol->managedPointer != NULL) {
        hws_table_put(&symbolTable, *symbol->managedPointer, NULL);
    }
    *symbol->managedPointer = place;
    return hws_table_put(&symbolTable, place, symbol);
}

/* A managed variable outlives a reset of the device. The host uses a copy until the image is loaded again. */
static void hws_managed_keep(hws_symbol_t *symbol) {
    void *copy = *symbol->managedPointer == NULL || symbol->bytes == 0 ? NULL : malloc(symbol->bytes);
    if (copy != NULL) {
        symbol->managedCopy = memcpy(copy, *symbol->managedPointer, symbol->bytes);
        hws_managed_set(symbol, copy);
    }
}

/* Lets the program's host code use the managed variables of an image that has just been loaded. Lock held. */
static cudaError_t hws_managed_place(const hws_image_t *image, CUlibrary library) {
    for (hws_symbol_t *symbol = image->symbols; symbol != NULL; symbol = symbol->next) {
        if (symbol->kind != HWS_SYMBOL_MANAGED) {
            continue;
        }
        CUdeviceptr address;
        HWS_TRY(hws_error_from_driver(cuLibraryGetManaged(&address, &symbol->bytes, library, symbol->name)));
        if (!hws_managed_set(symbol, (void *) (uintptr_t) address)) {
            return cudaErrorMemoryAllocation;
        }
        if (symbol->managedCopy != NULL) {
            memcpy(*symbol->managedPointer, symbol->managedCopy, symbol->bytes);
            free(symbol->managedCopy);
            symbol->managedCopy = NULL;
        }
    }
    return cudaSuccess;
}

void hws_image_unload_all(void) {
    pthread_mutex_lock(&registryLock);
    for (hws_image_t *image = images; image != NULL; image = image->next) {
        CUlibrary library = atomic_exchange(&image->library, NULL);
        for (hws_symbol_t *symbol = image->symbols; library != NULL && symbol != NULL; symbol = symbol->next) {
            atomic_store(&symbol->kernel, NULL);
            if (symbol->kind == HWS_SYMBOL_MANAGED) {
                hws_managed_keep(symbol);
            }
        }
        if (library != NULL) {
            /* The reset that follows frees it anyway. */
            (void) cuLibraryUnload(library);
        }
    }
    pthread_mutex_unlock(&registryLock);
}

/* Returns the image's library; loads it at the first use. The calling thread has entered a context. */
static cudaError_t hws_image_load(hws_image_t *image, CUlibrary *library_p) {
    /* pairs with the release store below */
    CUlibrary library = atomic_load_explicit(&image->library, memory_order_acquire);
    cudaError_t error = cudaSuccess;
    if (library == NULL) {
        pthread_mutex_lock(&registryLock);
        library = atomic_load_explicit(&image->library, memory_order_relaxed);
        if (atomic_load(&image->gone)) {
            error = cudaErrorInvalidResourceHandle;
        } else if (library == NULL) {
            error = hws_error_from_driver(cuLibraryLoadData(&library, image->wrapper, NULL, NULL, 0, NULL, NULL, 0));
            if (error == cudaSuccess) {
                if (hws_managed_place(image, library) != cudaSuccess) {
                    fprintf(stderr, "hawser: __managed__ variables are not available to the host\n");
                }
                atomic_store_explicit(&image->library, library, memory_order_release);
            }
        }
        pthread_mutex_unlock(&registryLock);
    }
    *library_p = library;
    return error;
}

HWS_API char __cudaInitModule(void **fatCubinHandle) {
    hws_image_t *image = (hws_image_t *) fatCubinHandle;
    CUlibrary library = NULL;
    cudaError_t error = hws_context_enter();
    if (error == cudaSuccess) {
        error = hws_image_load(image, &library);
    }
    if (error != cudaSuccess) {
        fprintf(stderr, "hawser: __managed__ variables are not available: %s\n", cudaGetErrorString(error));
        (void) hws_error_record(error);
    }
    return 1;
}

cudaError_t hws_kernel_resolve(const void *func, CUkernel *kernel_p) {
    hws_symbol_t *symbol = hws_table_find(&symbolTable, func);
    if (symbol == NULL || symbol->kind != HWS_SYMBOL_KERNEL) {
        return cudaErrorInvalidDeviceFunction;
    }
    CUkernel kernel = atomic_load_explicit(&symbol->kernel, memory_order_acquire);
    if (kernel == NULL) {
        CUlibrary library;
        cudaError_t error = hws_image_load(symbol->image, &library);
        if (error != cudaSuccess) {
            return error;
        }
        /* Two threads may both make this call; they get the same result. */
        CUresult result = cuLibraryGetKernel(&kernel, library, symbol->name);
        if (result != CUDA_SUCCESS) {
            return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidDeviceFunction : hws_error_from_driver(result);
        }
        atomic_store_explicit(&symbol->kernel, kernel, memory_order_release);
    }
    *kernel_p = kernel;
    return cudaSuccess;
}

const void *hws_kernel_host(CUkernel kernel) {
    const void *found = NULL;
    pthread_mutex_lock(&registryLock);
    for (hws_image_t *image = images; image != NULL && found == NULL; image = image->next) {
        for (hws_symbol_t *symbol = image->symbols; symbol != NULL && found == NULL; symbol = symbol->next) {
            if (symbol->kind == HWS_SYMBOL_KERNEL
                && atomic_load_explicit(&symbol->kernel, memory_order_relaxed) == kernel) {
                found = symbol->key;
            }
        }
    }
    if (found == NULL && hws_table_find(&symbolTable, kernel) != NULL) {
        found = kernel; /* a cudaKernel_t is its own key */
    }
    pthread_mutex_unlock(&registryLock);
    return found;
}

cudaError_t hws_symbol_resolve(const void *key, CUdeviceptr *address, size_t *bytes) {
    hws_symbol_t *symbol = hws_table_find(&symbolTable, key);
    if (symbol == NULL || symbol->kind == HWS_SYMBOL_KERNEL) {
        return cudaErrorInvalidSymbol;
    }
    CUlibrary library;
    cudaError_t error = hws_image_load(symbol->image, &library);
    if (error != cudaSuccess) {
        return error;
    }
    unsigned int generation;
    CUcontext context = hws_context_cacheable(&generation);
    pthread_mutex_lock(&registryLock);
    if (context == NULL || symbol->context != context || symbol->generation != generation) {
        CUresult result = symbol->kind == HWS_SYMBOL_MANAGED
            ? cuLibraryGetManaged(&symbol->address, &symbol->bytes, library, symbol->name)
            : cuLibraryGetGlobal(&symbol->address, &symbol->bytes, library, symbol->name);
        symbol->context = result == CUDA_SUCCESS ? context : NULL;
        symbol->generation = generation;
        error = result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : hws_error_from_driver(result);
    }
    if (error == cudaSuccess) {
        *address = symbol->address;
        *bytes = symbol->bytes;
    }
    pthread_mutex_unlock(&registryLock);
    return error;
}

cudaError_t hws_kernel_publish(CUkernel kernel, CUlibrary library) {
    cudaError_t error = cudaSuccess;
    pthread_mutex_lock(&registryLock);
    if (hws_table_find(&symbolTable, kernel) == NULL) {
        hws_symbol_t *symbol = calloc(1, sizeof *symbol);
        if (symbol != NULL) {
            symbol->kind = HWS_SYMBOL_KERNEL;
            symbol->key = kernel;
            symbol->library = library;
            symbol->next = published;
            atomic_store(&symbol->kernel, kernel);
        }
        if (symbol == NULL || !hws_table_put(&symbolTable, kernel, symbol)) {
            free(symbol);
            error = cudaErrorMemoryAllocation;
        } else {
            published = symbol;
        }
    }
    pthread_mutex_unlock(&registryLock);
    return error;
}

void hws_kernel_retract(CUlibrary library) {
    pthread_mutex_lock(&registryLock);
    for (hws_symbol_t **link = &published; *link != NULL;) {
        hws_symbol_t *symbol = *link;
        if (symbol->library == library) {
            hws_table_put(&symbolTable, symbol->key, NULL);
            *link = symbol->next; /* not freed: a launch in another thread may be reading it */
        } else {
            link = &symbol->next;
        }
    }
    pthread_mutex_unlock(&registryLock);
}
