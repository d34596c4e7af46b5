/// @file lt.h
/// @brief The gemm library of the device, as `ait::runtime::lt`: cuBLASLt or hipBLASLt, whose interfaces are alike.
#ifndef AIT_RUNTIME_GPU_LT_H_
#define AIT_RUNTIME_GPU_LT_H_

#if defined(AIT_HIP)
#include "rocm/hipblaslt.h"
#else
#include "cuda/cublaslt_algorithm.h"
#include "cuda/cublaslt_api.h"
#endif

#endif  // AIT_RUNTIME_GPU_LT_H_
