/// @file gemm_service.h
/// @brief The service "gemm": matrix products on the gemm library of the device (OpenBLAS, cuBLASLt, hipBLASLt).
#ifndef AIT_GEMM_SERVICE_H_
#define AIT_GEMM_SERVICE_H_

#include <stdint.h>

#include "ait/precision.h"
#include "ait/service.h"

typedef enum ait_epilogue {
  AIT_EPILOGUE_NONE = 0,
  AIT_EPILOGUE_BIAS = 1,       ///< + bias[n]
  AIT_EPILOGUE_RELU = 2,       ///< relu, after the bias if both are set
  AIT_EPILOGUE_FAST_GELU = 4   ///< tanh-form gelu, after the bias if both are set
} ait_epilogue;

#define AIT_GEMM_ALGORITHM_PARTS 9

/// An algorithm of a gemm library, in the library's own numbers: id, tile, split of k, reduction, swizzle, custom option, stages, inner
/// shape, cluster (cuBLASLt's `cublasLtMatmulAlgoConfigAttributes_t`, in their order).
typedef struct ait_gemm_algorithm_v1 {
  int32_t parts[AIT_GEMM_ALGORITHM_PARTS];
} ait_gemm_algorithm_v1;

/// A matrix that a gemm reads, one for each batch. Strides are in elements.
typedef struct ait_gemm_operand_v2 {
  const void* data;
  int32_t dtype;
  int32_t transposed;   ///< not 0: stored with rows and columns exchanged
  int64_t ld;           ///< stride between the stored rows
  int64_t batch;        ///< stride between batches; 0: all batches have the same matrix
  const float* scale;   ///< what the values are multiplied by, on the device; null: 1
  int64_t scale_row, scale_col;  ///< how many rows and columns share one scale; 0: all of them
} ait_gemm_operand_v2;

/// The row-major matrix that a gemm writes.
typedef struct ait_gemm_result_v2 {
  void* data;
  int32_t dtype;
  int64_t ld, batch;
  const float* scale;   ///< what the values are multiplied by before they are rounded, one number on the device; null: 1
} ait_gemm_result_v2;

/// D = epilogue(alpha * A @ B + beta * C): A is [batch, m, k], B is [batch, k, n], C and D are [batch, m, n].
/// Sums are f32, in f64 where A and B are f64. A library refuses with a reason what it cannot compute.
typedef struct ait_gemm_v2 {
  int64_t batch, m, n, k;
  ait_gemm_operand_v2 a, b, c;  ///< c.data may be null
  ait_gemm_result_v2 d;
  const void* bias;             ///< [n]; may be null
  int32_t bias_dtype;
  int32_t epilogue;             ///< ait_epilogue flags
  float alpha, beta;
  const ait_gemm_algorithm_v1* algorithm;  ///< what to run where the library takes it; null: what it estimates to be the fastest
  void* workspace;
  int64_t workspace_bytes;
  int32_t precision;            ///< ait_precision, of f32
} ait_gemm_v2;

struct ait_gemm_service_v2 {
  static constexpr const char* kName = "gemm";
  static constexpr int32_t kVersion = 2;
  /// Called by several threads at once, and while a stream is captured: after the first call for a shape it allocates nothing and waits for nothing.
  int32_t (*run)(const ait_host_v1* host, const ait_gemm_v2* args, void* stream);
};

namespace ait {

/// @brief Runs a library gemm on the stream of this run.
inline int32_t library_gemm(const Context& ctx, const ait_gemm_v2& args) { return call_service(ctx, &ait_gemm_service_v2::run, args); }

}  // namespace ait

#endif  // AIT_GEMM_SERVICE_H_
