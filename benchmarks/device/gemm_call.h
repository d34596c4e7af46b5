// What the programs of benchmarks/device hand to a gemm under test: `GemmCall` of gemm_problem.py.
#ifndef AIT_BENCHMARKS_DEVICE_GEMM_CALL_H_
#define AIT_BENCHMARKS_DEVICE_GEMM_CALL_H_

#include <stdint.h>

struct GemmCall {
  int32_t tile, split, epilogue, dtype, a_k, b_k;  // epilogue: index into gemm_problem.EPILOGUES; dtype as ait_dtype
  int64_t m, n, k, outer, inner;
  int64_t lda, ldb, ldd, ldr;
  int64_t a_batch, b_batch, d_batch, r_batch;      // stride between inner batches; outer ones follow on
  const void *a, *b, *bias, *residual;
  void* d;
  void* stream;
};

#endif  // AIT_BENCHMARKS_DEVICE_GEMM_CALL_H_
