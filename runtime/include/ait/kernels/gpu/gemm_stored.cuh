/// @file gemm_stored.cuh
/// @brief Products with a weight that stays in 4 or 8 bits, in ordinary arithmetic: any sizes and element types, any GPU. A warp sums a column
/// for a few rows, its lanes share k.
#ifndef AIT_KERNELS_GPU_GEMM_STORED_CUH_
#define AIT_KERNELS_GPU_GEMM_STORED_CUH_

#include "ait/kernels/gpu/gemm_columns.cuh"
#include "ait/kernels/stored.h"

#if defined(AIT_GPU)
namespace ait::gpu {

/// @brief Everything that the kernels of stored weights are given; `gemm` has no b.
template <class T, class Stored, class D, class... E>
struct StoredArgs {
  GemmArgs<T, D, E...> gemm;
  Stored b;
};

/// @brief 8 columns of 4 rows. Grid: spans of columns, groups of rows.
template <class F, class T, class Stored, class D, class... E>
__global__ void __launch_bounds__(kBlockColumns * kWarpSize) gemm_stored_kernel(const AIT_GRID_CONSTANT StoredArgs<T, Stored, D, E...> args) {
  constexpr int kBits = Stored::kBits, kPerByte = 8 / kBits;
  __shared__ ColumnSums shared;
  const GemmArgs<T, D, E...>& gemm = args.gemm;
  const int lane = int(threadIdx.x) % kWarpSize, warp = int(threadIdx.x) / kWarpSize;
  const int m0 = int(blockIdx.y) * kBlockRows, n0 = int(blockIdx.x) * kBlockColumns, n = n0 + warp;
  wait_for_previous();
  float sums[kBlockRows];
#pragma unroll
  for (int r = 0; r < kBlockRows; ++r) sums[r] = 0.f;
  if (n < gemm.n) {
    const uint8_t* const row = args.b.data + n * args.b.pitch;
    const int bytes = (gemm.k + kPerByte - 1) / kPerByte;
    const uint32_t flip = args.b.flip();
    int64_t group = -1;
    int origin = 0;
    float scale = 0.f;
    for (int i = lane; i < bytes; i += kWarpSize) {
      const int64_t now = int64_t(i) * kPerByte / args.b.group;
      if (now != group) {
        group = now;
        origin = args.b.origin(n, group);
        scale = convert<float>(args.b.scale[n * args.b.groups + group]);
      }
      const uint32_t b = (uint32_t(row[i]) ^ flip) & 255u;
#pragma unroll
      for (int p = 0; p < kPerByte; ++p) {
        const int k = i * kPerByte + p;
        const float w = float(int(kBits == 4 ? (b >> (4 * p)) & 15u : b) - origin) * scale;
#pragma unroll
        for (int r = 0; r < kBlockRows; ++r) {
          if (m0 + r < gemm.m && k < gemm.k) sums[r] += convert<float>(gemm.a.data[(m0 + r) * gemm.a.row + k]) * w;
        }
      }
    }
  }
  store_column_sums<F>(gemm, shared, sums, m0, n0);
}

/// @brief The arguments of a product with a stored weight.
template <class T, class Stored, class D, class... E>
inline StoredArgs<T, Stored, D, E...> stored_args(const GemmShape& shape, const Matrices<const T>& a, const Stored& b, const Matrices<D>& d,
                                                  const Operands<E...>& operands) {
  return {args_without_b(shape, a, d, operands), b};
}

/// @brief Launches `gemm_stored_kernel`: d = epilogue(a @ b^T) for a stored b; a is contiguous along k.
template <class F, class T, class Stored, class D, class... E>
int32_t gemm_stored(const Context& ctx, const GemmShape& shape, const Matrices<const T>& a, const Stored& b, const Matrices<D>& d,
                    const Operands<E...>& operands) {
  if (shape.m == 0 || shape.n == 0) return 0;
  return launch(ctx, column_launch(shape), gemm_stored_kernel<F, T, Stored, D, E...>, stored_args(shape, a, b, d, operands));
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_GEMM_STORED_CUH_
