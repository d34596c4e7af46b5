/// @file gemm_stream.cuh
/// @brief Products of few rows with a large matrix, as in decoding (sm_90 and later): bound by the bytes of b, which every warp reads straight
/// into registers, 16 bytes a lane.
///
/// The order of k within a step is permuted so that a lane's 16 bytes are operands as they are; a sum does not mind.
#ifndef AIT_KERNELS_GPU_GEMM_STREAM_CUH_
#define AIT_KERNELS_GPU_GEMM_STREAM_CUH_

#include "ait/kernels/gpu/few_rows.cuh"
#include "ait/kernels/gpu/gemm_simt.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @tparam kChunks_ pieces of 32 along k that a warp has on their way at once; the others are those of `FewRowsTile`
template <int kColumns_, int kEights_, int kWarps_, int kChunks_, int kBlocks_>
struct StreamTile : FewRowsTile<kColumns_ / 16, kEights_, kWarps_, kBlocks_> {
  static constexpr int kChunks = kChunks_;
  static constexpr int kStep = 32 * kChunks;  ///< of k, for a warp
  static_assert(kColumns_ % 16 == 0 && (kEights_ == 1 || kEights_ == 2));
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

/// @brief A tile of columns for at most Tile::kRows rows.
/// @param early whether b may be read before the launch before has ended
template <class Tile, class F, class T, class D, class... E>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks) gemm_stream_kernel(const __grid_constant__ GemmArgs<T, D, E...> args, bool early) {
  AIT_DYNAMIC_SHARED(128, stream_shared);
  float* const parts = reinterpret_cast<float*>(stream_shared);
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int n0 = int(blockIdx.y) * Tile::kColumns, m0 = int(blockIdx.z) * Tile::kRows, splits = int(gridDim.x);
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

  typename Tile::Sums sums;
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
  finish_few_rows<Tile, F>(args, parts, sums, m0, n0);
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
  return launch(ctx, few_rows_config<Tile>(split, tiles_n, tiles_m), gemm_stream_kernel<Tile, F, T, D, E...>, args, early);
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_GEMM_STREAM_CUH_
