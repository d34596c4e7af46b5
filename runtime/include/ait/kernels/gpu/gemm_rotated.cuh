/// @file gemm_rotated.cuh
/// @brief A product whose first columns are heads that are turned by an angle for each pair of columns (rotary position embedding), on Hopper.
#ifndef AIT_KERNELS_GPU_GEMM_ROTATED_CUH_
#define AIT_KERNELS_GPU_GEMM_ROTATED_CUH_

#include "ait/kernels/gpu/gemm_wgmma.cuh"
#include "ait/kernels/gpu/vector.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief Column i of the first half of a head, x, and of the second, y, become x cos - y sin and y cos + x sin.
/// @param other the other column of the pair, negative in the first half
struct Turn {
  template <class A, class C, class O>
  static AIT_FN void apply(A own, A other, C cosine, C sine, O& out) {
    out = static_cast<O>(own * cosine + other * sine);
  }
};

/// @brief One result a thread, for operands that the copy engine does not take.
template <int kHead, class T, class D>
__global__ void __launch_bounds__(128) gemm_rotated_simt_kernel(GemmShape shape, Matrices<const T> a, Matrices<const T> b, Matrices<D> d,
                                                                Matrices<const T> cosines, Matrices<const T> sines, int64_t turned) {
  using A = compute_t<T>;
  wait_for_previous();
  allow_next();
  const int64_t count = shape.outer * shape.inner * shape.m * shape.n;
  for (int64_t index = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; index < count; index += int64_t(gridDim.x) * blockDim.x) {
    const int64_t col = index % shape.n, row = index / shape.n % shape.m, batch = index / shape.n / shape.m;
    const int64_t outer = batch / shape.inner, inner = batch % shape.inner;
    const auto at = [&](const auto& x, int64_t i, int64_t j) {
      return convert<A>(x.data[outer * x.outer + inner * x.inner + i * x.row + j * x.col]);
    };
    const auto sum = [&](int64_t j) {
      A total = 0;
      for (int64_t k = 0; k < shape.k; ++k) total += at(a, row, k) * at(b, k, j);
      return total;
    };
    A result = sum(col);
    if (col < turned) {
      const int64_t place = col % kHead, pair = place % (kHead / 2);
      const bool first = place < kHead / 2;
      const A other = sum(first ? col + kHead / 2 : col - kHead / 2);
      Turn::apply(result, first ? -other : other, at(cosines, row, pair), at(sines, row, pair), result);
    }
    d.data[outer * d.outer + inner * d.inner + row * d.row + col * d.col] = convert<D>(result);
  }
}

/// @brief d = a @ b, its first `turned` columns turned by heads of `Tile::kHead`; cosines and sines have half as many columns, which all heads share.
///
/// As gemm_wgmma; N is a multiple of 8. Where a pointer or a row starts off 16-byte boundaries, or K is 0, a slow kernel takes over.
/// @tparam kVectors bits 0 and 1: all rows share one row of the cosines, of the sines
template <class Tile, bool kBK, uint32_t kVectors, class T, class D>
int32_t gemm_rotated(const Context& ctx, const GemmShape& shape, Matrices<const T> a, Matrices<const T> b, Matrices<D> d,
                     Operands<T, T> tables, int64_t turned, bool a_early = false, bool b_early = false) {
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
  const bool aligned = rows_aligned(a, a.col, a.row) && (kBK ? rows_aligned(b, b.row, b.col) : rows_aligned(b, b.col, b.row)) &&
                       rows_aligned(d, d.col, d.row) && all_aligned<0>(tables) && shape.n % kSpan == 0 && shape.k > 0;
  if (!aligned) {
    LaunchConfig config;
    config.block = dim3(128);
    config.grid = dim3(ceil_div(shape.outer * shape.inner * shape.m * shape.n, 128, 1 << 20));
    config.dependent = true;
    return launch(ctx, config, gemm_rotated_simt_kernel<Tile::kHead, T, D>, shape, a, b, d, tables.first, tables.rest.first, turned);
  }
  return launch_matrices<Tile, true, kBK, true, kVectors, Turn>(ctx, shape, a, b, d, tables, a_early, b_early, int(turned));
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_GEMM_ROTATED_CUH_
