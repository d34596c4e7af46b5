/// @file few_rows.cuh
/// @brief What products of few rows with a large matrix share: the shape of a block's work, and the end of the kernel. Columns of the result are
/// rows of the matrix instruction, and the few rows of a its columns: b @ a^T. Warps and the blocks of a cluster share k and put their sums together.
#ifndef AIT_KERNELS_GPU_FEW_ROWS_CUH_
#define AIT_KERNELS_GPU_FEW_ROWS_CUH_

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/cluster.cuh"
#include "ait/kernels/gpu/gemm_epilogue.cuh"
#include "ait/kernels/gpu/mma.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief The shape of a block's work.
/// @tparam kSixteens_ times 16 columns of the result, of which every warp sums a part of k
/// @tparam kEights_ times 8 rows of a
/// @tparam kWarps_ warps of a block
/// @tparam kBlocks_ blocks that share a multiprocessor
template <int kSixteens_, int kEights_, int kWarps_, int kBlocks_>
struct FewRowsTile {
  static constexpr int kSixteens = kSixteens_, kEights = kEights_, kWarps = kWarps_, kBlocks = kBlocks_;
  static constexpr int kThreads = 32 * kWarps, kRows = 8 * kEights, kColumns = 16 * kSixteens;
  static constexpr int kPitch = kColumns + 4;  ///< floats from row to row of a warp's sums: the rows of a quad fall in different banks
  static constexpr int kPartFloats = kRows * kPitch;
  static constexpr int kSharedBytes = kWarps * kPartFloats * 4;
  static_assert(kBlocks * kSharedBytes <= 227 * 1024);
  using Sums = float[kSixteens][kEights][4];  ///< of a lane
};

/// @brief Adds the sums of the warps, then those of the blocks of the cluster, and stores the results.
/// @param parts `Tile::kSharedBytes` of shared memory: [warp][row][column]
/// @param m0, n0 the first row and column of the tile
template <class Tile, class F, class T, class D, class... E>
__device__ __forceinline__ void finish_few_rows(const GemmArgs<T, D, E...>& args, float* parts, const typename Tile::Sums& sums, int m0, int n0) {
  constexpr int kPitch = Tile::kPitch;
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, splits = int(gridDim.x);
  float* const mine = parts + warp * Tile::kPartFloats;
#pragma unroll
  for (int s = 0; s < Tile::kSixteens; ++s) {
#pragma unroll
    for (int e = 0; e < Tile::kEights; ++e) {
#pragma unroll
      for (int i = 0; i < 4; ++i) mine[(lane % 4 * 2 + i % 2 + 8 * e) * kPitch + s * 16 + lane / 4 + i / 2 * 8] = sums[s][e][i];
    }
  }
  __syncthreads();
  constexpr int kFours = Tile::kColumns / 4;
  for (int id = int(threadIdx.x); id < Tile::kRows * kFours; id += Tile::kThreads) {
    float4* to = reinterpret_cast<float4*>(parts + id / kFours * kPitch + id % kFours * 4);
    float4 all = *to;
#pragma unroll
    for (int w = 1; w < Tile::kWarps; ++w) {
      const float4 v = to[w * (Tile::kPartFloats / 4)];
      all.x += v.x, all.y += v.y, all.z += v.z, all.w += v.w;
    }
    *to = all;  // in the place of the first warp's, which no other thread reads
  }
  if (splits > 1) {
    cluster_barrier();
  } else {
    __syncthreads();
  }
  constexpr int kSpans = Tile::kColumns / kSpan;
  for (int id = int(blockIdx.x) * Tile::kThreads + int(threadIdx.x); id < Tile::kRows * kSpans; id += splits * Tile::kThreads) {
    const int at_row = id / kSpans, at_col = id % kSpans * kSpan, to_row = m0 + at_row, to_col = n0 + at_col;
    if (to_row >= args.m || to_col >= args.n) continue;
    typename Operands<E...>::Raw raw;
    args.operands.fetch(0, 0, to_row, to_col, args.n - to_col, raw);
    Span<float> sum;
#pragma unroll
    for (int i = 0; i < kSpan; ++i) sum.v[i] = splits > 1 ? 0.f : parts[at_row * kPitch + at_col + i];
    const uint32_t at = shared_address(parts) + uint32_t(at_row * kPitch + at_col) * 4;
    for (int r = 0; splits > 1 && r < splits; ++r) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float4 v = load_cluster_float4(at + uint32_t(half) * 16, uint32_t(r));
        sum.v[half * 4] += v.x, sum.v[half * 4 + 1] += v.y, sum.v[half * 4 + 2] += v.z, sum.v[half * 4 + 3] += v.w;
      }
    }
    args.template finish<F>(0, 0, to_row, to_col, sum, raw);
  }
  if (splits > 1) cluster_barrier();  // the others may still read the sums of this block
}

/// @brief The launch of a kernel of tiles. Grid: blocks that share k (one cluster), tiles of columns, tiles of rows.
/// @param split blocks of a cluster: 1, 2, 4 or 8
template <class Tile>
LaunchConfig few_rows_config(int split, int64_t tiles_n, int64_t tiles_m) {
  LaunchConfig config;
  config.grid = dim3(grid_size(split), grid_size(tiles_n), grid_size(tiles_m));
  config.block = dim3(Tile::kThreads);
  config.shared_bytes = Tile::kSharedBytes;
  config.cluster = uint32_t(split);
  config.dependent = true;
  return config;
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_FEW_ROWS_CUH_
