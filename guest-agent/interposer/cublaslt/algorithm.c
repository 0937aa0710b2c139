/*
 * Algorithms. What the library recommends for a content is asked once and remembered, as long as the cache has room.
 */
#include "hws_cublaslt.h"

#include "hws_cublaslt_calls.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ALGOS 512          /* of one heuristic; NVIDIA's library has far fewer for any product */
#define MAX_IDS 4096           /* of cublasLtMatmulAlgoGetIds */
#define MAX_VALUE 16384u       /* bytes of an attribute of an algorithm */
#define MAX_SETTING 64u        /* bytes of an attribute that can be set */
#define SLOTS 8192u            /* a power of two */
#define MOST (SLOTS / 2)       /* remembered answers */
#define MOST_BYTES (16u << 20) /* of their results: a program chooses how many a question asks for */

/* What an answer depends on. Has no padding. */
typedef struct question {
    uint64_t context;
    HwsLtMatmulDesc desc;
    HwsLtEmulation emulation;
    HwsLtLayout layouts[4];
    HwsLtPreference preference;
    uint64_t requested;
} question_t;

_Static_assert(sizeof(question_t) % sizeof(uint64_t) == 0, "made of words");

/* The bits of a question, which are compared: it has floating-point numbers. */
typedef struct words {
    uint64_t words[sizeof(question_t) / sizeof(uint64_t)];
} words_t;

typedef struct answer {
    uint64_t hash;
    words_t question;
    int count;
    cublasLtMatmulHeuristicResult_t results[];
} answer_t;

/* Answers are added and never removed, so readers need no lock. */
static answer_t *_Atomic answers[SLOTS];

static void reduce(uint64_t *address) {
    *address = (*address & 0xff) | (*address != 0 ? 0x100 : 0); /* only the alignment has an effect: documented */
}

static words_t ask_about(const struct hws_lt_matmul *desc, const struct hws_lt_layout *const *layouts,
                         const struct hws_lt_preference *preference, int requested) {
    CUcontext context = NULL;
    question_t asked, *question = &asked;
    words_t bits;
    cuCtxGetCurrent(&context);
    question->context = (uintptr_t) context;
    question->desc = desc->content;
    question->emulation = *hws_lt_emulation((cublasLtMatmulDesc_t) desc);
    for (int i = 0; i < 4; i++) {
        question->layouts[i] = layouts[i]->content;
    }
    question->preference = preference->content;
    question->requested = (uint64_t) requested;
    uint64_t *addresses[] = {&question->desc.bias,
                             &question->desc.aux,
                             &question->desc.aScale,
                             &question->desc.bScale,
                             &question->desc.cScale,
                             &question->desc.dScale,
                             &question->desc.amaxD,
                             &question->desc.auxScale,
                             &question->desc.auxAmax,
                             &question->desc.dOutScale,
                             &question->emulation.mantissaBitCount};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        reduce(addresses[i]);
    }
    memcpy(bits.words, question, sizeof bits.words);
    return bits;
}

static uint64_t hash_of(const words_t *question) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < sizeof question->words / sizeof *question->words; i++) {
        hash = (hash ^ question->words[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* The slot with the question, or the empty one where it belongs. */
static answer_t *_Atomic *slot_of(const words_t *question, uint64_t hash) {
    for (uint32_t i = (uint32_t) hash;; i++) {
        answer_t *_Atomic *slot = &answers[i % SLOTS];
        const answer_t *entry = atomic_load_explicit(slot, memory_order_acquire); /* pairs with the release below */
        if (entry == NULL
            || (entry->hash == hash && memcmp(entry->question.words, question->words, sizeof question->words) == 0)) {
            return slot;
        }
    }
}

static void remember(const words_t *question, uint64_t hash, const cublasLtMatmulHeuristicResult_t *results,
                     int count) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static size_t entries, used;
    size_t bytes = (size_t) count * sizeof *results;
    answer_t *entry = malloc(sizeof *entry + bytes);
    if (entry == NULL) {
        return; /* the next call asks again */
    }
    entry->hash = hash;
    entry->question = *question;
    entry->count = count;
    memcpy(entry->results, results, bytes);
    size_t most = hws_lt_cache_capacity() < MOST ? hws_lt_cache_capacity() : MOST;
    pthread_mutex_lock(&lock);
    answer_t *_Atomic *slot = slot_of(question, hash);
    if (entries < most && used + bytes <= MOST_BYTES && atomic_load_explicit(slot, memory_order_relaxed) == NULL) {
        entries++;
        used += bytes;
        atomic_store_explicit(slot, entry, memory_order_release);
        entry = NULL;
    }
    pthread_mutex_unlock(&lock);
    free(entry);
}

HWS_EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t lightHandle,
                                                         cublasLtMatmulDesc_t operationDesc,
                                                         cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc,
                                                         cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
                                                         cublasLtMatmulPreference_t preference, int requestedAlgoCount,
                                                         cublasLtMatmulHeuristicResult_t *heuristicResultsArray,
                                                         int *returnAlgoCount) {
    HWS_ENTER();
    HwsLtTarget target = {.handle = hws_lt_handle(lightHandle)};
    if (target.handle == 0) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    HWS_REQUIRE(preference != NULL && heuristicResultsArray != NULL && returnAlgoCount != NULL);
    HWS_REQUIRE(requestedAlgoCount > 0);
    cublasStatus_t status = hws_lt_check(__func__, operationDesc, Adesc, Bdesc, Cdesc, Ddesc);
    if (status != CUBLAS_STATUS_SUCCESS) {
        return status;
    }
    int requested = requestedAlgoCount > MAX_ALGOS ? MAX_ALGOS : requestedAlgoCount;
    bool limited = preference->content.searchMode != CUBLASLT_SEARCH_BEST_FIT;
    words_t question;
    uint64_t hash = 0;
    bool caches = !limited && hws_lt_cache_capacity() > 0;
    if (caches) {
        const struct hws_lt_layout *layouts[] = {Adesc, Bdesc, Cdesc, Ddesc};
        question = ask_about(operationDesc, layouts, preference, requested);
        hash = hash_of(&question);
        const answer_t *known = atomic_load_explicit(slot_of(&question, hash), memory_order_acquire);
        if (known != NULL) {
            memcpy(heuristicResultsArray, known->results, (size_t) known->count * sizeof *known->results);
            *returnAlgoCount = known->count;
            return CUBLAS_STATUS_SUCCESS;
        }
    }
    cublasLtMatmulAlgo_t given[MAX_ALGOS];
    for (int i = 0; limited && i < requested; i++) {
        given[i] = heuristicResultsArray[i].algo; /* the search is among these */
    }
    cublasLtMatmulHeuristicResult_t results[MAX_ALGOS];
    uint32_t bytes = 0;
    status = hws_call_hwsLtAlgoGetHeuristic(&target, &operationDesc->content, hws_lt_emulation(operationDesc),
                                            &Adesc->content, &Bdesc->content, &Cdesc->content, &Ddesc->content,
                                            &preference->content, requested,
                                            limited ? (uint32_t) requested * sizeof *given : 0, given, results, &bytes);
    if (status == CUBLAS_STATUS_SUCCESS) {
        int count = (int) (bytes / sizeof *results);
        memcpy(heuristicResultsArray, results, (size_t) count * sizeof *results);
        *returnAlgoCount = count;
        if (caches) {
            remember(&question, hash, results, count);
        }
    }
    return status;
}

HWS_EXPORT cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc,
                                                  cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc,
                                                  cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
                                                  const cublasLtMatmulAlgo_t *algo,
                                                  cublasLtMatmulHeuristicResult_t *result) {
    HWS_ENTER();
    HwsLtTarget target = {.handle = hws_lt_handle(lightHandle)};
    if (target.handle == 0) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    HWS_REQUIRE(algo != NULL && result != NULL);
    cublasStatus_t status = hws_lt_check(__func__, operationDesc, Adesc, Bdesc, Cdesc, Ddesc);
    if (status != CUBLAS_STATUS_SUCCESS) {
        return status;
    }
    cublasLtMatmulHeuristicResult_t checked;
    status = hws_call_hwsLtAlgoCheck(&target, &operationDesc->content, hws_lt_emulation(operationDesc), &Adesc->content,
                                     &Bdesc->content, &Cdesc->content, &Ddesc->content, algo, &checked);
    if (status == CUBLAS_STATUS_SUCCESS) {
        checked.algo = result->algo; /* documented: never updated */
        *result = checked;
    }
    return status;
}

HWS_EXPORT cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t lightHandle, cublasComputeType_t computeType,
                                                   cudaDataType_t scaleType, cudaDataType_t Atype, cudaDataType_t Btype,
                                                   cudaDataType_t Ctype, cudaDataType_t Dtype, int requestedAlgoCount,
                                                   int *algoIdsArray, int *returnAlgoCount) {
    HWS_ENTER();
    HwsLtTarget target = {.handle = hws_lt_handle(lightHandle)};
    if (target.handle == 0) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    HWS_REQUIRE(requestedAlgoCount > 0 && algoIdsArray != NULL && returnAlgoCount != NULL);
    uint32_t bytes = 0;
    cublasStatus_t status =
        hws_call_hwsLtAlgoGetIds(&target, computeType, scaleType, Atype, Btype, Ctype, Dtype,
                                 requestedAlgoCount > MAX_IDS ? MAX_IDS : requestedAlgoCount, algoIdsArray, &bytes);
    if (status == CUBLAS_STATUS_SUCCESS) {
        *returnAlgoCount = (int) (bytes / sizeof *algoIdsArray);
    }
    return status;
}

HWS_EXPORT cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t lightHandle, cublasComputeType_t computeType,
                                                 cudaDataType_t scaleType, cudaDataType_t Atype, cudaDataType_t Btype,
                                                 cudaDataType_t Ctype, cudaDataType_t Dtype, int algoId,
                                                 cublasLtMatmulAlgo_t *algo) {
    HWS_ENTER();
    HwsLtTarget target = {.handle = hws_lt_handle(lightHandle)};
    if (target.handle == 0) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    HWS_REQUIRE(algo != NULL);
    return hws_call_hwsLtAlgoInit(&target, computeType, scaleType, Atype, Btype, Ctype, Dtype, algoId, algo);
}

static cublasStatus_t get(const cublasLtMatmulAlgo_t *algo, uint32_t is_config, int attribute, void *buf, size_t bytes,
                          size_t *written) {
    HWS_ENTER();
    HWS_REQUIRE(algo != NULL && (bytes == 0 ? written != NULL : buf != NULL));
    unsigned char value[MAX_VALUE];
    unsigned long long needed = 0;
    uint32_t asked = bytes > sizeof value ? (uint32_t) sizeof value : (uint32_t) bytes;
    cublasStatus_t status = hws_call_hwsLtAlgoGetAttribute(algo, is_config, attribute, asked, &needed, value);
    if (status == CUBLAS_STATUS_SUCCESS) {
        memcpy(buf, value, bytes == 0 ? 0 : needed < asked ? needed : asked);
        if (written != NULL) {
            *written = needed;
        }
    }
    return status;
}

HWS_EXPORT cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                            cublasLtMatmulAlgoCapAttributes_t attr, void *buf,
                                                            size_t sizeInBytes, size_t *sizeWritten) {
    return get(algo, 0, (int) attr, buf, sizeInBytes, sizeWritten);
}

HWS_EXPORT cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                               cublasLtMatmulAlgoConfigAttributes_t attr, void *buf,
                                                               size_t sizeInBytes, size_t *sizeWritten) {
    return get(algo, 1, (int) attr, buf, sizeInBytes, sizeWritten);
}

HWS_EXPORT cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *algo,
                                                               cublasLtMatmulAlgoConfigAttributes_t attr,
                                                               const void *buf, size_t sizeInBytes) {
    HWS_ENTER();
    HWS_REQUIRE(algo != NULL && buf != NULL && sizeInBytes > 0 && sizeInBytes <= MAX_SETTING);
    return hws_call_hwsLtAlgoSetAttribute(algo, (int) attr, (uint32_t) sizeInBytes, buf, algo);
}
