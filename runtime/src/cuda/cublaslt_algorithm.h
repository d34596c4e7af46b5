/// @file cublaslt_algorithm.h
/// @brief Algorithms of cuBLASLt as descriptions that outlive a process: to parts and back, and which of them a problem may run on.
#ifndef AIT_CUDA_CUBLASLT_ALGORITHM_H_
#define AIT_CUDA_CUBLASLT_ALGORITHM_H_

#include "cublaslt_api.h"
#include "gemm.h"

namespace ait::runtime::lt {

/// @brief A gemm as cuBLASLt is told of it: element, compute and scale types, the operation, and its four matrices.
struct Matmul {
  int type = 0, compute = 0, scale = 0;
  Descriptor desc = nullptr;
  Descriptor a = nullptr, b = nullptr, c = nullptr, d = nullptr;
};

/// @brief The bytes of each part of a description, by its attribute.
inline constexpr size_t kPartBytes[AIT_GEMM_ALGORITHM_PARTS] = {4, 4, 4, 4, 4, 4, 4, 2, 2};

/// @brief The parts of an algorithm; false if the library does not give them.
inline bool describe(const Api& api, const Algorithm& algorithm, ait_gemm_algorithm_v1* found) {
  for (int i = 0; i < AIT_GEMM_ALGORITHM_PARTS; ++i) {
    uint32_t value = 0;
    size_t written = 0;
    if (api.algorithm_get(&algorithm, i, &value, kPartBytes[i], &written) != kSuccess) return false;
    found->parts[i] = int32_t(value);
  }
  return true;
}

/// @brief The algorithm of a description; false if this library has none. Whether it takes a problem is another question.
inline bool restore(const Api& api, Handle handle, const Matmul& matmul, const ait_gemm_algorithm_v1& description, Algorithm* found) {
  const int t = matmul.type;
  if (api.algorithm_init(handle, matmul.compute, matmul.scale, t, t, t, t, description.parts[kAlgorithmId], found) != kSuccess) return false;
  for (int i = kAlgorithmId + 1; i < AIT_GEMM_ALGORITHM_PARTS; ++i) {
    const uint32_t value = uint32_t(description.parts[i]);
    // A part that an algorithm does not have is read as 0 and cannot be set.
    if (api.algorithm_set(found, i, &value, kPartBytes[i]) != kSuccess && value != 0) return false;
  }
  return true;
}

/// @brief How often an algorithm rounds the result to the element type, for 2-byte elements, as measured on cuBLASLt 13.1 and sm_90: with
/// split-K the bias is added to the rounded product; with a bias and a residual, or a bias and the gelu, every algorithm but the Hopper
/// kernels rounds between them.
inline int roundings(const Api& api, const Algorithm& algorithm, const Gemm& args, bool residual) {
  constexpr int32_t kHopperKernels = 66;
  if (args.epilogue == 0 || (args.dtype != AIT_F16 && args.dtype != AIT_BF16)) return 1;
  int32_t id = 0, split = 1;
  size_t written = 0;
  if (api.algorithm_get(&algorithm, kAlgorithmId, &id, sizeof id, &written) != kSuccess) return 2;
  if (api.algorithm_get(&algorithm, kAlgorithmSplitK, &split, sizeof split, &written) != kSuccess) return 2;
  const bool more = residual || (args.epilogue & AIT_EPILOGUE_FAST_GELU) != 0;
  return split > 1 || (more && id != kHopperKernels) ? 2 : 1;
}

/// @brief The workspace that a description may ask for: what the artifact of a model has for it (`CublasLtGemm.workspace`).
inline int64_t room_for(const ait_gemm_algorithm_v1& description, const Gemm& args) {
  const int64_t split = description.parts[kAlgorithmSplitK];
  return (int64_t(1) << 20) + (split > 1 ? 4 * split * args.batch * args.m * args.n : 0);
}

/// @brief Whether a described algorithm runs this gemm in `workspace` bytes, rounding once; if so, it is `found`.
inline bool takes(const Api& api, Handle handle, const Matmul& matmul, const Gemm& args, bool residual, int64_t workspace,
                  const ait_gemm_algorithm_v1& description, Algorithm* found) {
  Heuristic result{};
  return restore(api, handle, matmul, description, found) && roundings(api, *found, args, residual) == 1 &&
         api.algorithm_check(handle, matmul.desc, matmul.a, matmul.b, matmul.c, matmul.d, found, &result) == kSuccess &&
         result.state == kSuccess && int64_t(result.workspace) <= workspace;
}

}  // namespace ait::runtime::lt

#endif  // AIT_CUDA_CUBLASLT_ALGORITHM_H_
