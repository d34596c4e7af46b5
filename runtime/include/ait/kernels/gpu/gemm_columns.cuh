/// @file gemm_columns.cuh
/// @brief Shared by the products in ordinary arithmetic whose b is stored in few bits: a warp sums a column for a few rows, its lanes share k.
#ifndef AIT_KERNELS_GPU_GEMM_COLUMNS_CUH_
#define AIT_KERNELS_GPU_GEMM_COLUMNS_CUH_

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/gemm_epilogue.cuh"

#if defined(AIT_GPU)
namespace ait::gpu {

/// Columns of the result of a block, a warp each, and rows that are summed at once.
inline constexpr int kBlockColumns = kSpan, kBlockRows = 4;

/// @brief The sums of a block, [row][column]: a variable in shared memory.
struct ColumnSums {
  float v[kBlockRows][kBlockColumns];
};

/// @brief Adds the sums of the lanes of each warp, and stores the rows from m0 on, at columns from n0 on. All threads of the block call it.
template <class F, class T, class D, class... E>
__device__ __forceinline__ void store_column_sums(const GemmArgs<T, D, E...>& gemm, ColumnSums& shared, float (&sums)[kBlockRows], int m0, int n0) {
  const int lane = int(threadIdx.x) % kWarpSize, warp = int(threadIdx.x) / kWarpSize;
#pragma unroll
  for (int r = 0; r < kBlockRows; ++r) {
#pragma unroll
    for (int mask = kWarpSize / 2; mask > 0; mask /= 2) sums[r] += shuffle_xor(sums[r], mask);
    if (lane == 0) shared.v[r][warp] = sums[r];
  }
  __syncthreads();
  allow_next();
  const int r = int(threadIdx.x);
  if (r >= kBlockRows || m0 + r >= gemm.m) return;
  typename Operands<E...>::Raw raw;
  gemm.operands.fetch(0, 0, m0 + r, n0, gemm.n - n0, raw);
  Span<float> sum;
#pragma unroll
  for (int i = 0; i < kSpan; ++i) sum.v[i] = shared.v[r][i];
  gemm.template finish<F>(0, 0, m0 + r, n0, sum, raw);
}

/// @brief The arguments of a product without its b.
template <class T, class D, class... E>
inline GemmArgs<T, D, E...> args_without_b(const GemmShape& shape, const Matrices<const T>& a, const Matrices<D>& d,
                                           const Operands<E...>& operands) {
  return {int(shape.m), int(shape.n), int(shape.k), 1,    0,    0,
          a,            Matrices<const T>{nullptr, 0, 0}, d,    true, true, rows_aligned(d, d.col, d.row),
          operands};
}

/// @brief Grid: spans of columns, groups of rows.
inline LaunchConfig column_launch(const GemmShape& shape) {
  LaunchConfig config;
  config.grid = dim3(grid_size((shape.n + kBlockColumns - 1) / kBlockColumns), grid_size((shape.m + kBlockRows - 1) / kBlockRows));
  config.block = dim3(kBlockColumns * kWarpSize);
  config.dependent = true;
  return config;
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_GEMM_COLUMNS_CUH_
