/// @file gemm.h
/// @brief The functions that a device implements for the service "gemm": `cpu/openblas.cc`, `gpu/gemm_lt.cc`.
#ifndef AIT_RUNTIME_GEMM_H_
#define AIT_RUNTIME_GEMM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ait/gemm_service.h"

namespace ait::runtime {

/// @brief A gemm whose operands and result have one element type and no scales, as the libraries compute it.
/// op(A) is [m, k]: A stored [m, k] (trans_a = 0) or [k, m] (1). op(B) is [k, n]: B stored [k, n] (trans_b = 0) or [n, k] (1).
struct Gemm {
  int32_t dtype = 0, trans_a = 0, trans_b = 0, epilogue = 0, precision = AIT_PRECISION_HIGHEST;
  int64_t batch = 0, m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0, ldd = 0;
  int64_t batch_a = 0, batch_b = 0, batch_c = 0, batch_d = 0;
  const void *a = nullptr, *b = nullptr, *c = nullptr, *bias = nullptr;
  void* d = nullptr;
  float alpha = 1, beta = 0;
  const ait_gemm_algorithm_v1* algorithm = nullptr;
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;
};

/// @brief Reads the arguments of a call into `gemm`.
/// @return whether it is such a gemm; if not, `error` has the reason.
inline bool read_gemm(const ait_gemm_v2& args, Gemm* gemm, std::string* error) {
  const bool residual = args.c.data != nullptr, biased = (args.epilogue & AIT_EPILOGUE_BIAS) != 0;
  if (biased && args.bias == nullptr) {
    *error = "the gemm service was asked to add a bias, but the bias is null";
    return false;
  }
  const int32_t dtype = args.a.dtype;
  if (args.b.dtype != dtype || args.d.dtype != dtype || (residual && args.c.dtype != dtype) || (biased && args.bias_dtype != dtype)) {
    *error = "the gemm service takes operands and results of one dtype, found a " + std::to_string(dtype) + ", b " +
             std::to_string(args.b.dtype) + (residual ? ", c " + std::to_string(args.c.dtype) : "") +
             (biased ? ", bias " + std::to_string(args.bias_dtype) : "") + ", d " + std::to_string(args.d.dtype);
    return false;
  }
  if (args.a.scale != nullptr || args.b.scale != nullptr || (residual && args.c.scale != nullptr) || args.d.scale != nullptr) {
    *error = "the gemm service takes no scales for dtype " + std::to_string(dtype);
    return false;
  }
  if (residual && args.c.transposed != 0) {
    *error = "the gemm service takes no transposed c";
    return false;
  }
  gemm->dtype = dtype, gemm->trans_a = args.a.transposed != 0, gemm->trans_b = args.b.transposed != 0, gemm->epilogue = args.epilogue;
  gemm->precision = dtype == AIT_F32 ? args.precision : AIT_PRECISION_HIGHEST;
  gemm->batch = args.batch, gemm->m = args.m, gemm->n = args.n, gemm->k = args.k;
  gemm->lda = args.a.ld, gemm->ldb = args.b.ld, gemm->ldc = args.c.ld, gemm->ldd = args.d.ld;
  gemm->batch_a = args.a.batch, gemm->batch_b = args.b.batch, gemm->batch_c = args.c.batch, gemm->batch_d = args.d.batch;
  gemm->a = args.a.data, gemm->b = args.b.data, gemm->c = args.c.data, gemm->bias = args.bias, gemm->d = args.d.data;
  gemm->alpha = args.alpha, gemm->beta = args.beta, gemm->algorithm = args.algorithm;
  gemm->workspace = args.workspace, gemm->workspace_bytes = args.workspace_bytes;
  return true;
}

/// @brief Computes `gemm` on `stream` (null on the CPU), as `ait_gemm_service_v2::run` says.
/// @return 0, or a non-zero status with the reason in `error`.
int32_t compute_gemm(const Gemm& gemm, void* stream, std::string* error);

/// @brief Adds the algorithms that the library estimates to be the fastest for `gemm`, best first, to `found`: those that it takes again by
/// their description, and that round once. None where operands do not begin on 16 bytes, or the library has no such descriptions.
/// @return 0, or a non-zero status with the reason in `error`.
int32_t gemm_algorithms(const Gemm& gemm, std::vector<ait_gemm_algorithm_v1>* found, std::string* error);

/// @brief What a timing does with the library gemms of a run: runs them on one algorithm, or asks for those that there are, on a workspace of
/// its own.
struct GemmTrial {
  const ait_gemm_algorithm_v1* algorithm = nullptr;
  std::vector<ait_gemm_algorithm_v1>* list = nullptr;  ///< if set, nothing is run and the algorithms are added to it
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;
};

extern const ait_gemm_service_v2 kGemmService;

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_GEMM_H_
