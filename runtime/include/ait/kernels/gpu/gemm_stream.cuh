/// @file gemm_stream.cuh
/// @brief Products of few rows with a large matrix, as in decoding (sm_90 and later): bound by the bytes of b, which every warp reads straight
/// into registers, 16 bytes a lane; warps and the blocks of a cluster share k and put their sums together.
///
/// Columns of the result are rows of the matrix instruction, and the few rows of a its columns: b @ a^T. The order of k within a step is
/// permuted so that a lane's 16 bytes are operands as they are; a sum does not mind.
#ifndef AIT_KERNELS_GPU_GEMM_STREAM_CUH_
#define AIT_KERNELS_GPU_GEMM_STREAM_CUH_

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/gemm_epilogue.cuh"
#include "ait/kernels/gpu/gemm_simt.cuh"
#include "ait/kernels/gpu/mma.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief The shape of a block's work.
/// @tparam kColumns_ columns of the result, of which every warp sums a part of k
/// @tparam kEights_ times 8 rows of a
/// @tparam kWarps_ warps of a block
/// @tparam kChunks_ pieces of 32 along k that a warp has on their way at once
/// @tparam kBlocks_ blocks that share a multiprocessor
template <int kColumns_, int kEights_, int kWarps_, int kChunks_, int kBlocks_>
struct StreamTile {
  static constexpr int kColumns = kColumns_, kEights = kEights_, kWarps = kWarps_, kChunks = kChunks_, kBlocks = kBlocks_;
  static constexpr int kThreads = 32 * kWarps, kRows = 8 * kEights, kSixteens = kColumns / 16;
  static constexpr int kStep = 32 * kChunks;       ///< of k, for a warp
  static constexpr int kPitch = kColumns + 4;      ///< floats from row to row of a warp's sums: the rows of a quad fall in different banks
  static constexpr int kPartFloats = kRows * kPitch;
  static constexpr int kSharedBytes = kWarps * kPartFloats * 4;
  static_assert(kColumns % 16 == 0 && (kEights == 1 || kEights == 2) && kBlocks * kSharedBytes <= 227 * 1024);
};

/// @brief The elements that a warp reads in a step.
template <class Tile, class T>
struct StreamStep {
  uint4 b[Tile::kChunks][Tile::kSixteens][2];  ///< of columns 16 s + lane / 4 + {0, 8}: the elements 32 c + 8 (lane % 4) ... of k
  uint4 a[Tile::kChunks][Tile::kEights];       ///< of rows lane / 4 + 8 e, the same elements

  __device__ __forceinline__ void load_b(const Matrices<const T>& from, const T* column, int columns, int k0, int k) {
    const int at = k0 + int(threadIdx.x) % 4 * 8;
#pragma unroll
    for (int s = 0; s < Tile::kSixteens; ++s) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const T* x = column + int64_t(s * 16 + h * 8) * from.col + at;
#pragma unroll
        for (int c = 0; c < Tile::kChunks; ++c) b[c][s][h] = read_once(x + c * 32, s * 16 + h * 8 < columns && at + c * 32 < k);
      }
    }
  }
  __device__ __forceinline__ void load_a(const Matrices<const T>& from, const T* row, int rows, int k0, int k) {
    const int at = k0 + int(threadIdx.x) % 4 * 8;
#pragma unroll
    for (int e = 0; e < Tile::kEights; ++e) {
      const T* x = row + int64_t(8 * e) * from.row + at;
#pragma unroll
      for (int c = 0; c < Tile::kChunks; ++c) {
        a[c][e] = make_uint4(0, 0, 0, 0);
        if (8 * e < rows && at + c * 32 < k) a[c][e] = *reinterpret_cast<const uint4*>(x + c * 32);
      }
    }
  }
};

/// @brief A tile of columns for at most Tile::kRows rows. Grid: blocks that share k (one cluster), tiles of columns, tiles of rows.
/// @param early whether b may be read before the launch before has ended
template <class Tile, class F, class T, class D, class... E>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks) gemm_stream_kernel(const __grid_constant__ GemmArgs<T, D, E...> args, bool early) {
  constexpr int kPitch = Tile::kPitch, kColumns = Tile::kColumns;
  AIT_DYNAMIC_SHARED(128, stream_shared);
  float* const parts = reinterpret_cast<float*>(stream_shared);
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int n0 = int(blockIdx.y) * kColumns, m0 = int(blockIdx.z) * Tile::kRows, splits = int(gridDim.x);
  const T* column = args.b.data + int64_t(n0 + lane / 4) * args.b.col;
  const T* row = args.a.data + int64_t(m0 + lane / 4) * args.a.row;
  const int columns = args.n - n0 - lane / 4, rows = args.m - m0 - lane / 4;  // that exist from this lane's first on
  const int stride = splits * Tile::kWarps * Tile::kStep;
  int k0 = (int(blockIdx.x) * Tile::kWarps + warp) * Tile::kStep;

  StreamStep<Tile, T> step;
  if (early) step.load_b(args.b, column, columns, k0, args.k);
  wait_for_previous();
  if (!early) step.load_b(args.b, column, columns, k0, args.k);
  step.load_a(args.a, row, rows, k0, args.k);

  float sums[Tile::kSixteens][Tile::kEights][4];
#pragma unroll
  for (int s = 0; s < Tile::kSixteens; ++s)
#pragma unroll
    for (int e = 0; e < Tile::kEights; ++e)
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[s][e][i] = 0.f;

  for (; k0 < args.k; k0 += stride) {
#pragma unroll
    for (int c = 0; c < Tile::kChunks; ++c) {
#pragma unroll
      for (int s = 0; s < Tile::kSixteens; ++s) {
        const uint4 low = step.b[c][s][0], high = step.b[c][s][1];
        const uint32_t b[2][4] = {{low.x, high.x, low.y, high.y}, {low.z, high.z, low.w, high.w}};
#pragma unroll
        for (int e = 0; e < Tile::kEights; ++e) {
          mma_16x8x16<T>(sums[s][e], b[0], step.a[c][e].x, step.a[c][e].y);
          mma_16x8x16<T>(sums[s][e], b[1], step.a[c][e].z, step.a[c][e].w);
        }
      }
    }
    step.load_b(args.b, column, columns, k0 + stride, args.k);
    step.load_a(args.a, row, rows, k0 + stride, args.k);
  }
  allow_next();

  // The sums of the warps, then those of the blocks: [row][column].
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
  constexpr int kFours = kColumns / 4;
  for (int id = int(threadIdx.x); id < Tile::kRows * kFours; id += Tile::kThreads) {
    float4* to = reinterpret_cast<float4*>(parts + id / kFours * kPitch + id % kFours * 4);
    float4 all = *to;
#pragma unroll
    for (int w = 1; w < Tile::kWarps; ++w) {
      const float4 x = to[w * (Tile::kPartFloats / 4)];
      all.x += x.x, all.y += x.y, all.z += x.z, all.w += x.w;
    }
    *to = all;  // in the place of the first warp's, which no other thread reads
  }
  if (splits > 1) {
    cluster_barrier();
  } else {
    __syncthreads();
  }
  const uint32_t parts_at = shared_address(parts);
  constexpr int kSpans = kColumns / kSpan;
  for (int id = int(blockIdx.x) * Tile::kThreads + int(threadIdx.x); id < Tile::kRows * kSpans; id += splits * Tile::kThreads) {
    const int at_row = id / kSpans, at_col = id % kSpans * kSpan, to_row = m0 + at_row, to_col = n0 + at_col;
    if (to_row >= args.m || to_col >= args.n) continue;
    typename Operands<E...>::Raw raw;
    args.operands.fetch(0, 0, to_row, to_col, args.n - to_col, raw);
    Span<float> sum;
#pragma unroll
    for (int i = 0; i < kSpan; ++i) sum.v[i] = 0.f;
    const uint32_t at = parts_at + uint32_t(at_row * kPitch + at_col) * 4;
    for (int r = 0; r < splits; ++r) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float4 x = load_cluster_float4(at + uint32_t(half) * 16, uint32_t(r));
        sum.v[half * 4] += x.x, sum.v[half * 4 + 1] += x.y, sum.v[half * 4 + 2] += x.z, sum.v[half * 4 + 3] += x.w;
      }
    }
    args.template finish<F>(0, 0, to_row, to_col, sum, raw);
  }
  if (splits > 1) cluster_barrier();  // the others may still read the sums of this block
}

/// @brief Launches `gemm_stream_kernel` on half or bfloat16, k contiguous in a and b. Where their rows do not start on 16-byte boundaries, or k
/// is no multiple of 8, a slow kernel takes over.
/// @param split blocks of a cluster, which share k: 1, 2, 4 or 8
template <class Tile, class F, class T, class D, class... E>
int32_t gemm_stream(const Context& ctx, const GemmShape& shape, Matrices<const T> a, Matrices<const T> b, Matrices<D> d,
                    Operands<E...> operands, int split, bool early) {
  if (shape.m == 0 || shape.n == 0) return 0;
  if (shape.m == 1) a.row = d.row = 0;
  const int64_t tiles_n = (shape.n + Tile::kColumns - 1) / Tile::kColumns, tiles_m = (shape.m + Tile::kRows - 1) / Tile::kRows;
  const bool aligned = rows_aligned(a, a.col, a.row) && rows_aligned(b, b.row, b.col) && shape.k % 8 == 0;
  if (!aligned || tiles_n > 65535 || tiles_m > 65535) return gemm_simt<F>(ctx, shape, a, b, d, operands);
  const GemmArgs<T, D, E...> args{int(shape.m), int(shape.n), int(shape.k), 1, int(tiles_m), int(tiles_n), a, b, d,
                                  true, true, rows_aligned(d, d.col, d.row), operands};
  LaunchConfig config;
  config.grid = dim3(grid_size(split), grid_size(tiles_n), grid_size(tiles_m));
  config.block = dim3(Tile::kThreads);
  config.shared_bytes = Tile::kSharedBytes;
  config.cluster = uint32_t(split);
  config.dependent = true;
  return launch(ctx, config, gemm_stream_kernel<Tile, F, T, D, E...>, args, early);
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_GEMM_STREAM_CUH_
