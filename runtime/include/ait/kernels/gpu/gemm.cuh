/// @file gemm.cuh
/// @brief Native gemm for CUDA and HIP: on the tensor cores (`gemm_mma`; `gemm_mfma` on AMD's) and in ordinary arithmetic (`gemm_simt`).
#ifndef AIT_KERNELS_GPU_GEMM_CUH_
#define AIT_KERNELS_GPU_GEMM_CUH_

#include "ait/kernels/gpu/gemm_mfma.cuh"
#include "ait/kernels/gpu/gemm_mma.cuh"
#include "ait/kernels/gpu/gemm_simt.cuh"

#endif  // AIT_KERNELS_GPU_GEMM_CUH_
