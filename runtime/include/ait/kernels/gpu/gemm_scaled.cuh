/// @file gemm_scaled.cuh
/// @brief Products of 8-bit floats with scales of blocks along K, in ordinary arithmetic: any sizes and blocks. A warp sums a column for a few
/// rows, its lanes share k.
#ifndef AIT_KERNELS_GPU_GEMM_SCALED_CUH_
#define AIT_KERNELS_GPU_GEMM_SCALED_CUH_

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/gemm_epilogue.cuh"

#if defined(AIT_GPU)
namespace ait::gpu {

/// Columns of the result of a block, a warp each, and rows that are summed at once.
inline constexpr int kScaledColumns = kSpan, kScaledRows = 4;

/// @brief The arguments of `gemm_scaled_kernel`. `gemm` has no b.
template <class A, class B, class D, class... E>
struct ScaledArgs {
  GemmArgs<A, D, E...> gemm;
  Matrices<const B> b;
  BlockScales scales;
};

/// @brief The sums of a block, [row][column]: a variable in shared memory.
struct ScaledSums {
  float v[kScaledRows][kScaledColumns];
};

/// @brief 8 columns of 4 rows. Grid: spans of columns, groups of rows.
template <class F, class A, class B, class D, class... E>
__global__ void __launch_bounds__(kScaledColumns * kWarpSize) gemm_scaled_kernel(const AIT_GRID_CONSTANT ScaledArgs<A, B, D, E...> args) {
  __shared__ ScaledSums shared;
  const GemmArgs<A, D, E...>& gemm = args.gemm;
  const BlockScales& scales = args.scales;
  const int lane = int(threadIdx.x) % kWarpSize, warp = int(threadIdx.x) / kWarpSize;
  const int m0 = int(blockIdx.y) * kScaledRows, n0 = int(blockIdx.x) * kScaledColumns, n = n0 + warp;
  wait_for_previous();
  float sums[kScaledRows];
#pragma unroll
  for (int r = 0; r < kScaledRows; ++r) sums[r] = 0.f;
  if (n < gemm.n) {
    const B* const column = args.b.data + n * args.b.col;
    const float* const column_scales = scales.columns + int64_t(n / scales.block) * scales.groups;
    for (int k = lane; k < gemm.k; k += kWarpSize) {
      const int group = k / scales.group;
      const float w = convert<float>(column[k]) * column_scales[group];
#pragma unroll
      for (int r = 0; r < kScaledRows; ++r) {
        if (m0 + r < gemm.m) {
          sums[r] += convert<float>(gemm.a.data[(m0 + r) * gemm.a.row + k]) * (scales.rows[int64_t(m0 + r) * scales.groups + group] * w);
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kScaledRows; ++r) {
#pragma unroll
    for (int mask = kWarpSize / 2; mask > 0; mask /= 2) sums[r] += shuffle_xor(sums[r], mask);
    if (lane == 0) shared.v[r][warp] = sums[r];
  }
  __syncthreads();
  allow_next();
  const int r = int(threadIdx.x);
  if (r >= kScaledRows || m0 + r >= gemm.m) return;
  typename Operands<E...>::Raw raw;
  gemm.operands.fetch(0, 0, m0 + r, n0, gemm.n - n0, raw);
  Span<float> sum;
#pragma unroll
  for (int i = 0; i < kSpan; ++i) sum.v[i] = shared.v[r][i];
  gemm.template finish<F>(0, 0, m0 + r, n0, sum, raw);
}

/// @brief Launches `gemm_scaled_kernel`: d = epilogue(a @ b), of numbers times scales. a and b are contiguous along k.
template <class F, class A, class B, class D, class... E>
int32_t gemm_scaled(const Context& ctx, const GemmShape& shape, const Matrices<const A>& a, const Matrices<const B>& b, const BlockScales& scales,
                    const Matrices<D>& d, const Operands<E...>& operands) {
  if (shape.m == 0 || shape.n == 0) return 0;
  const GemmArgs<A, D, E...> gemm{int(shape.m), int(shape.n), int(shape.k), 1,    0,    0,
                                  a,            Matrices<const A>{nullptr, 0, 0}, d,    true, true, rows_aligned(d, d.col, d.row),
                                  operands};
  LaunchConfig config;
  config.grid = dim3(grid_size((shape.n + kScaledColumns - 1) / kScaledColumns), grid_size((shape.m + kScaledRows - 1) / kScaledRows));
  config.block = dim3(kScaledColumns * kWarpSize);
  config.dependent = true;
  return launch(ctx, config, gemm_scaled_kernel<F, A, B, D, E...>, ScaledArgs<A, B, D, E...>{gemm, b, scales});
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_GEMM_SCALED_CUH_
