/* Included by every file of libcusparseLt.so: the entry of a call, and what lies in the program's structures. */
#ifndef HWS_CUSPARSELT_H
#define HWS_CUSPARSELT_H

#include "hws_cusparselt_types.h"
#include "hws_math.h"

#include <stdbool.h>
#include <stddef.h>

/* First line of every function that sends a record. */
#define HWS_ENTER() HWS_NEED(hws_math_gate() == 0, CUSPARSE_STATUS_INTERNAL_ERROR)

/* Returns CUSPARSE_STATUS_INVALID_VALUE unless the condition holds. */
#define HWS_REQUIRE(condition) HWS_NEED(condition, CUSPARSE_STATUS_INVALID_VALUE)

/* Leaves the calling function with a status other than CUSPARSE_STATUS_SUCCESS. */
#define HWS_TRY(call)                                                                                                  \
    do {                                                                                                               \
        cusparseStatus_t hws_tried = (call);                                                                           \
        HWS_NEED(hws_tried == CUSPARSE_STATUS_SUCCESS, hws_tried);                                                     \
    } while (0)

/*
 * What lies in the program's structures. A mark tells an initialized structure from other bytes. A structure is whole
 * by itself, so a program may copy it.
 */
#define HWS_SLT_HANDLE_MARK 0x6861776c74480001u
#define HWS_SLT_MATRIX_MARK 0x6861776c744d0002u
#define HWS_SLT_MATMUL_MARK 0x6861776c74500003u
#define HWS_SLT_SELECTION_MARK 0x6861776c74530004u
#define HWS_SLT_PLAN_MARK 0x6861776c744c0005u

typedef struct hws_slt_kept_handle {
    uint64_t mark;
    uint64_t id;
} hws_slt_kept_handle_t;

typedef struct hws_slt_kept_matrix {
    uint64_t mark;
    HwsSltMatrix content;
} hws_slt_kept_matrix_t;

/* A product. Has the content that its matrices had when the descriptor was initialized. */
typedef struct hws_slt_product {
    HwsSltMatmul matmul;
    HwsSltMatrix matrices[4]; /* A, B, C and D */
} hws_slt_product_t;

typedef struct hws_slt_kept_matmul {
    uint64_t mark;
    uint64_t number; /* of this initialization */
    hws_slt_product_t product;
} hws_slt_kept_matmul_t;

typedef struct hws_slt_kept_selection {
    uint64_t mark;
    uint64_t number; /* of cusparseLtMatmulSearch's results; copies have the same one */
    HwsSltAlgorithm algorithm;
    HwsSltFacts facts;
} hws_slt_kept_selection_t;

/* Where a plan has its content from. */
typedef struct hws_slt_origin {
    uint64_t number;   /* of the descriptor's initialization */
    uintptr_t address; /* of the descriptor; not followed, because the descriptor may be gone */
} hws_slt_origin_t;

/* Has the content that its descriptor and its selection had when the plan was initialized; see hws_slt_product(). */
typedef struct hws_slt_kept_plan {
    uint64_t mark;
    hws_slt_origin_t descriptor;
    uint64_t selection; /* its number */
    hws_slt_product_t product;
    HwsSltAlgorithm algorithm;
    HwsSltFacts facts;
} hws_slt_kept_plan_t;

_Static_assert(sizeof(cusparseLtMatmulPlan_t) == 512, "cusparseLtMatmulPlan_t");
_Static_assert(sizeof(hws_slt_kept_matmul_t) <= sizeof(cusparseLtMatmulDescriptor_t), "cusparseLtMatmulDescriptor_t");
_Static_assert(sizeof(hws_slt_kept_plan_t) <= sizeof(cusparseLtMatmulPlan_t), "cusparseLtMatmulPlan_t");

/* The content of a structure of the program; INVALID_VALUE leaves the calling function unless it is initialized. */
#define HWS_SLT_KEPT(type, mark_, structure)                                                                           \
    (__extension__({                                                                                                   \
        HWS_REQUIRE((structure) != NULL);                                                                              \
        type *hws_kept = (void *) (structure)->data;                                                                   \
        HWS_REQUIRE(hws_kept->mark == (mark_));                                                                        \
        hws_kept;                                                                                                      \
    }))
#define HWS_MATRIX(structure) HWS_SLT_KEPT(const hws_slt_kept_matrix_t, HWS_SLT_MATRIX_MARK, structure)
#define HWS_MATMUL(structure) HWS_SLT_KEPT(const hws_slt_kept_matmul_t, HWS_SLT_MATMUL_MARK, structure)
#define HWS_SELECTION(structure) HWS_SLT_KEPT(const hws_slt_kept_selection_t, HWS_SLT_SELECTION_MARK, structure)
#define HWS_PLAN(structure) HWS_SLT_KEPT(const hws_slt_kept_plan_t, HWS_SLT_PLAN_MARK, structure)

/* The id of a handle. The calling function returns INVALID_VALUE for none, NOT_INITIALIZED for an invalid one. */
#define HWS_HANDLE(handle)                                                                                             \
    (__extension__({                                                                                                   \
        HWS_REQUIRE((handle) != NULL);                                                                                 \
        HwsSltHandle hws_id = hws_slt_id(handle);                                                                      \
        HWS_NEED(hws_id != NULL, CUSPARSE_STATUS_NOT_INITIALIZED);                                                     \
        hws_id;                                                                                                        \
    }))

/* The id of a valid handle as it travels; NULL for another one. Any thread. */
HwsSltHandle hws_slt_id(const cusparseLtHandle_t *handle);

/*
 * Asks the library for what it makes of a content, and remembers its answer. Parts after the stage are not read and may
 * be NULL. A matrix alone is the first one of `matrices`.
 */
cusparseStatus_t hws_slt_make(HwsSltHandle handle, HwsSltStage stage, const HwsSltMatmul *matmul,
                              const HwsSltMatrix *matrices, const HwsSltAlgorithm *algorithm, HwsSltFacts *facts);

/* The next number of an initialization, from 1. Any thread. */
uint64_t hws_slt_next_number(void);

/*
 * Begins to follow a descriptor for a plan of it. Each plan that has begun ends it. Returns false without memory. As the
 * following functions, for any thread.
 */
bool hws_slt_follow(hws_slt_origin_t descriptor);
void hws_slt_end_following(hws_slt_origin_t descriptor);

/* Gives the plans of a descriptor its new attributes. */
void hws_slt_tell_plans(hws_slt_origin_t descriptor, const HwsSltMatmul *matmul);

/* The content of a plan, with the attributes that its descriptor has got since. */
hws_slt_product_t hws_slt_product(const hws_slt_kept_plan_t *plan);

/* Remembers the algorithm that a search has found for the selection with a number. */
void hws_slt_remember_found(uint64_t selection, const HwsSltAlgorithm *algorithm);

/* The algorithm of a selection, found by a search with one of its plans or set by the program. */
HwsSltAlgorithm hws_slt_algorithm(const hws_slt_kept_selection_t *selection);

/* Logs once that a function has no implementation. Returns CUSPARSE_STATUS_NOT_SUPPORTED. */
cusparseStatus_t hws_unsupported(const char *name);

#endif
