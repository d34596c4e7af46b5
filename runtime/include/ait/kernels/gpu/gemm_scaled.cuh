/// @file gemm_scaled.cuh
/// @brief Products of 8-bit floats with scales of blocks along K, in ordinary arithmetic: any sizes and blocks. A warp sums a column for a few
/// rows, its lanes share k.
#ifndef AIT_KERNELS_GPU_GEMM_SCALED_CUH_
#define AIT_KERNELS_GPU_GEMM_SCALED_CUH_

#include "ait/kernels/gpu/gemm_columns.cuh"

#if defined(AIT_GPU)
namespace ait::gpu {

/// @brief The arguments of `gemm_scaled_kernel`. `gemm` has no b.
template <class A, class B, class D, class... E>
struct ScaledArgs {
  GemmArgs<A, D, E...> gemm;
  Matrices<const B> b;
  BlockScales scales;
};

/// @brief 8 columns of 4 rows. Grid: spans of columns, groups of rows.
template <class F, class A, class B, class D, class... E>
__global__ void __launch_bounds__(kBlockColumns * kWarpSize) gemm_scaled_kernel(const AIT_GRID_CONSTANT ScaledArgs<A, B, D, E...> args) {
  __shared__ ColumnSums shared;
  const GemmArgs<A, D, E...>& gemm = args.gemm;
  const BlockScales& scales = args.scales;
  const int lane = int(threadIdx.x) % kWarpSize, warp = int(threadIdx.x) / kWarpSize;
  const int m0 = int(blockIdx.y) * kBlockRows, n0 = int(blockIdx.x) * kBlockColumns, n = n0 + warp;
  wait_for_previous();
  float sums[kBlockRows];
#pragma unroll
  for (int r = 0; r < kBlockRows; ++r) sums[r] = 0.f;
  if (n < gemm.n) {
    const B* const column = args.b.data + n * args.b.col;
    const float* const column_scales = scales.columns + int64_t(n / scales.block) * scales.groups;
    for (int k = lane; k < gemm.k; k += kWarpSize) {
      const int group = k / scales.group;
      const float w = convert<float>(column[k]) * column_scales[group];
#pragma unroll
      for (int r = 0; r < kBlockRows; ++r) {
        if (m0 + r < gemm.m) {
          sums[r] += convert<float>(gemm.a.data[(m0 + r) * gemm.a.row + k]) * (scales.rows[int64_t(m0 + r) * scales.groups + group] * w);
        }
      }
    }
  }
  store_column_sums<F>(gemm, shared, sums, m0, n0);
}

/// @brief Launches `gemm_scaled_kernel`: d = epilogue(a @ b), of numbers times scales. a and b are contiguous along k.
template <class F, class A, class B, class D, class... E>
int32_t gemm_scaled(const Context& ctx, const GemmShape& shape, const Matrices<const A>& a, const Matrices<const B>& b, const BlockScales& scales,
                    const Matrices<D>& d, const Operands<E...>& operands) {
  if (shape.m == 0 || shape.n == 0) return 0;
  const ScaledArgs<A, B, D, E...> args{args_without_b(shape, a, d, operands), b, scales};
  return launch(ctx, column_launch(shape), gemm_scaled_kernel<F, A, B, D, E...>, args);
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_GEMM_SCALED_CUH_
