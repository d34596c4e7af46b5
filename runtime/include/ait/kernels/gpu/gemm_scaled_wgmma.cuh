/// @file gemm_scaled_wgmma.cuh
/// @brief Products of 8-bit floats with scales of blocks on Hopper (sm_90a): the sums of a step along K, 128 products long, are scaled where they
/// are added to those of the other steps (gemm_wgmma.cuh).
#ifndef AIT_KERNELS_GPU_GEMM_SCALED_WGMMA_CUH_
#define AIT_KERNELS_GPU_GEMM_SCALED_WGMMA_CUH_

#include "ait/kernels/gpu/gemm_scaled.cuh"
#include "ait/kernels/gpu/gemm_wgmma.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief Launches `gemm_wgmma_kernel` with scales: groups of 128 along K, and blocks of columns that are multiples of the tile's. Where rows of a
/// or b start off 16-byte boundaries, columns of d or an extra operand are not contiguous, or K is 0, a slow kernel takes over; so it does, if
/// `kAligned`, where rows of d or an extra operand start off 16-byte boundaries, or N is no multiple of 8.
/// @param a_early, b_early whether the operand is never written, as weights are
template <class Tile, bool kAligned, uint32_t kVectors, class F, class A, class B, class D, class... E>
int32_t gemm_scaled_wgmma(const Context& ctx, const GemmShape& shape, const Matrices<const A>& a, const Matrices<const B>& b,
                          const BlockScales& scales, const Matrices<D>& d, const Operands<E...>& operands, bool a_early = false,
                          bool b_early = false) {
  using T = Byte<A, B>;
  if (shape.m == 0 || shape.n == 0) return 0;
  const Matrices<const T> first = as_bytes<T>(a), second = as_bytes<T>(b);
  const bool rows = kAligned ? rows_aligned(d, d.col, d.row) && all_aligned<kVectors>(operands) && shape.n % kSpan == 0 : d.col == 1 && all_rows<kVectors>(operands);
  const bool fits = scales.group == Tile::template kDepth<T> && scales.block % Tile::kN == 0;
  if (!rows_aligned(first, a.col, a.row) || !rows_aligned(second, b.row, b.col) || !rows || !fits || shape.k == 0) {
    return gemm_scaled<F>(ctx, shape, a, b, scales, d, operands);
  }
  InScaledMatrices from{};
  from.scales = scales;
  return launch_matrices_from<Tile, true, true, kAligned, kVectors, F>(ctx, shape, first, second, d, operands, a_early, b_early, 0, from);
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_GEMM_SCALED_WGMMA_CUH_
