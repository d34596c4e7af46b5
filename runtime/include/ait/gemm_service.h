/// @file gemm_service.h
/// @brief The library gemm that the runtime library offers to model libraries. Each device implements `library_gemm` once:
/// `src/cpu/openblas.cc`, `src/cuda/cublaslt.cc`.
#ifndef AIT_GEMM_SERVICE_H_
#define AIT_GEMM_SERVICE_H_

#include <stdint.h>

#include <string>
#include <vector>

#include "ait/model_abi.h"

namespace ait::runtime {

/// @brief Computes `args` on `stream` (null on the CPU). Called by several threads at once, and on CUDA while a stream is captured:
/// no allocation and no synchronisation after the first call for a shape.
/// @return 0, or a non-zero status with the reason in `error`.
int32_t library_gemm(const ait_gemm_v1* args, void* stream, std::string* error);

/// @brief Adds the algorithms that the library estimates to be the fastest for `args`, best first, to `found`: those that it takes again by
/// their description, and that round once. None where operands do not begin on 16 bytes, or the library has no such descriptions.
/// @return 0, or a non-zero status with the reason in `error`.
int32_t library_gemm_algorithms(const ait_gemm_v1* args, std::vector<ait_gemm_algorithm_v1>* found, std::string* error);

/// @brief Where to look for the library that `library_gemm` loads (libopenblas, libcublasLt), best first: paths, then plain
/// sonames for the loader. Set by Python before the first model is made.
const std::vector<std::string>& gemm_library_candidates();

/// @brief How many CPU threads the runs of this process may use: AIT_NUM_THREADS, else what OpenMP had when the runtime library was loaded.
/// A run has those that no other run has, and its caller's (`src/cpu/device.cc`); its OpenMP regions and the gemm library use as many.
int num_threads();

}  // namespace ait::runtime

#endif  // AIT_GEMM_SERVICE_H_
