/// @file gemm_scaled_mma.cuh
/// @brief Products of 8-bit floats with scales of blocks on the tensor cores of sm_89 and later: the sums of 32 products are scaled where they are
/// added to the others (gemm_mma.cuh).
#ifndef AIT_KERNELS_GPU_GEMM_SCALED_MMA_CUH_
#define AIT_KERNELS_GPU_GEMM_SCALED_MMA_CUH_

#include "ait/kernels/gpu/gemm_mma.cuh"
#include "ait/kernels/gpu/gemm_scaled.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief Launches `gemm_mma_kernel` with scales: groups along K that are multiples of a step, blocks of columns that are multiples of the tile's.
/// `split` blocks, one cluster, share a tile (1, 2, 4 or 8; more than 1 needs sm_90). Where rows of a or b start off 16-byte boundaries a slow
/// kernel takes over.
/// @param early whether b is never written, as weights are
template <class Tile, class F, class A, class B, class D, class... E>
int32_t gemm_scaled_mma(const Context& ctx, const GemmShape& shape, const Matrices<const A>& a, const Matrices<const B>& b,
                        const BlockScales& scales, const Matrices<D>& d, const Operands<E...>& operands, int split = 1, bool early = false) {
  using T = Byte<A, B>;
  if (shape.m == 0 || shape.n == 0) return 0;
  const Matrices<const T> first = as_bytes<T>(a), second = as_bytes<T>(b);
  const bool fits = scales.group % Tile::template kDepth<T> == 0 && scales.block % Tile::kN == 0;
  if (!rows_aligned(first, a.col, a.row) || !rows_aligned(second, b.row, b.col) || !fits) {
    return gemm_scaled<F>(ctx, shape, a, b, scales, d, operands);
  }
  if (Tile::kPhases > 1) split = 1;
  const GemmArgs<T, D, E...> args{int(shape.m), int(shape.n), int(shape.k), 1, int((shape.m + Tile::kM - 1) / Tile::kM),
                                  int((shape.n + Tile::kN - 1) / Tile::kN), first, second, d, true, true, rows_aligned(d, d.col, d.row), operands};
  LaunchConfig config;
  config.grid = dim3(grid_size(int64_t(args.tiles_m) * args.tiles_n * split));
  config.block = dim3(Tile::kThreads);
  config.shared_bytes = Tile::kSharedBytes;
  config.cluster = uint32_t(split);
  config.dependent = true;
  using Product = ScaledProduct<T, D, E...>;
  const Product product{{args, split, early}, scales};
  return launch(ctx, config, gemm_mma_kernel<Tile, true, true, true, F, Product>, product);
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_GEMM_SCALED_MMA_CUH_
