/* Reductions that multiply by a factor first. They stay in the guest: an operation carries its factor. */
#include "hws_nccl.h"

#include "hws_nccl_functions.h"

#include <pthread.h>
#include <string.h>

#define FACTORS 1024 /* stops a program that never destroys its reductions */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hws_nccl_factor_t factors[FACTORS];

size_t hws_nccl_bytes(ncclDataType_t datatype) {
    switch ((int) datatype) {
        case ncclInt8:
        case ncclUint8:
        case ncclFloat8e4m3:
        case ncclFloat8e5m2:
            return 1;
        case ncclFloat16:
        case ncclBfloat16:
            return 2;
        case ncclInt32:
        case ncclUint32:
        case ncclFloat32:
            return 4;
        case ncclInt64:
        case ncclUint64:
        case ncclFloat64:
            return 8;
        default:
            return 0;
    }
}

HWS_EXPORT ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t datatype,
                                                 ncclScalarResidence_t residence, ncclComm_t comm) {
    HWS_REQUIRE(op != NULL && scalar != NULL && hws_nccl_find(comm) != NULL && hws_nccl_bytes(datatype) > 0);
    HWS_REQUIRE(residence == ncclScalarDevice || residence == ncclScalarHostImmediate);
    hws_nccl_factor_t made = {.comm = (uintptr_t) comm, .datatype = datatype};
    made.is_on_device = residence == ncclScalarDevice;
    if (made.is_on_device) {
        made.value = (uintptr_t) scalar;
    } else {
        memcpy(&made.value, scalar, hws_nccl_bytes(datatype));
    }
    ncclResult_t result = ncclSystemError;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < FACTORS && result != ncclSuccess; i++) {
        if (factors[i].comm == 0) {
            factors[i] = made;
            *op = (ncclRedOp_t) (HWS_NCCL_PRE_MUL_SUM + i);
            result = ncclSuccess;
        }
    }
    pthread_mutex_unlock(&lock);
    return hws_nccl_note(result);
}

bool hws_nccl_factor(ncclRedOp_t op, ncclDataType_t datatype, ncclComm_t comm, hws_nccl_factor_t *factor) {
    int at = (int) op - HWS_NCCL_PRE_MUL_SUM;
    if (at < 0 || at >= FACTORS) {
        return false;
    }
    pthread_mutex_lock(&lock);
    *factor = factors[at];
    pthread_mutex_unlock(&lock);
    return factor->comm == (uintptr_t) comm && factor->datatype == datatype;
}

HWS_EXPORT ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
    int at = (int) op - HWS_NCCL_PRE_MUL_SUM;
    HWS_REQUIRE(comm != NULL && at >= 0 && at < FACTORS);
    ncclResult_t result = ncclInvalidArgument;
    pthread_mutex_lock(&lock);
    if (factors[at].comm == (uintptr_t) comm) {
        factors[at].comm = 0;
        result = ncclSuccess;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

void hws_nccl_forget_factors(ncclComm_t comm) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < FACTORS; i++) {
        if (factors[i].comm == (uintptr_t) comm) {
            factors[i].comm = 0;
        }
    }
    pthread_mutex_unlock(&lock);
}
