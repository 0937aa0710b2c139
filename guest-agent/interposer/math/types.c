/* Sizes of the types of numbers, which sizes of a description name. */
#include "hws_cublas_types.h"
#include "hws_wire.h"

uint64_t hws_size_element(uint64_t type) {
    switch ((cudaDataType) type) {
        case CUDA_R_8I:
        case CUDA_R_8U:
        case CUDA_R_8F_E4M3:
        case CUDA_R_8F_E5M2:
        case CUDA_R_8F_UE8M0:
            return 1;
        case CUDA_R_16F:
        case CUDA_R_16BF:
        case CUDA_C_8I:
        case CUDA_C_8U:
        case CUDA_R_16I:
        case CUDA_R_16U:
            return 2;
        case CUDA_R_32F:
        case CUDA_C_16F:
        case CUDA_C_16BF:
        case CUDA_R_32I:
        case CUDA_R_32U:
        case CUDA_C_16I:
        case CUDA_C_16U:
            return 4;
        case CUDA_R_64F:
        case CUDA_C_32F:
        case CUDA_C_32I:
        case CUDA_C_32U:
        case CUDA_R_64I:
        case CUDA_R_64U:
            return 8;
        case CUDA_C_64F:
        case CUDA_C_64I:
        case CUDA_C_64U:
            return 16;
        default:
            return 0;
    }
}

uint64_t hws_size_compute(uint64_t compute, uint64_t type) {
    cudaDataType matrix = (cudaDataType) type;
    uint64_t parts = matrix == CUDA_C_32F || matrix == CUDA_C_64F || matrix == CUDA_C_8I || matrix == CUDA_C_16F
            || matrix == CUDA_C_16BF
        ? 2
        : 1;
    switch ((cublasComputeType_t) compute) {
        case CUBLAS_COMPUTE_16F:
        case CUBLAS_COMPUTE_16F_PEDANTIC:
            return 2 * parts;
        case CUBLAS_COMPUTE_64F:
        case CUBLAS_COMPUTE_64F_PEDANTIC:
        case CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT:
            return 8 * parts;
        case CUBLAS_COMPUTE_32F:
        case CUBLAS_COMPUTE_32F_PEDANTIC:
        case CUBLAS_COMPUTE_32F_FAST_16F:
        case CUBLAS_COMPUTE_32F_FAST_16BF:
        case CUBLAS_COMPUTE_32F_FAST_TF32:
        case CUBLAS_COMPUTE_32F_EMULATED_16BFX9:
        case CUBLAS_COMPUTE_32I:
        case CUBLAS_COMPUTE_32I_PEDANTIC:
            return 4 * parts;
        default:
            return 0;
    }
}
