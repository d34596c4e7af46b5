/// @file gemm_simt.cuh
/// @brief Gemm in ordinary arithmetic, for every element type, layout and device: 64 x 64 tiles, 4 x 4 results a thread.
#ifndef AIT_KERNELS_GPU_GEMM_SIMT_CUH_
#define AIT_KERNELS_GPU_GEMM_SIMT_CUH_

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/gemm_epilogue.cuh"

#if defined(AIT_GPU)
namespace ait::gpu {

inline constexpr int kSimtTile = 64, kSimtDepth = 16, kSimtThreads = 256, kSimtPitch = kSimtTile + 4;

/// @brief The tiles of `simt_tile`, as `Tile` describes those of `mma_tile`.
struct SimtTile {
  static constexpr int kM = kSimtTile, kCols = kSimtTile, kThreads = kSimtThreads, kSharedBytes = 0;
};

/// @brief Four elements of an operand tile for each thread: neighbours along whichever dim is contiguous.
/// @tparam kOperand a (0) or b (1)
template <class T, int kOperand>
struct SimtFetch {
  sum_t<T> v[4];
  int along, depth;      ///< place of the first: index in the tile's m or n, and in k
  bool k_contiguous;

  __device__ __forceinline__ void place(bool contiguous_in_k) {
    k_contiguous = contiguous_in_k;
    along = k_contiguous ? int(threadIdx.x) / 4 : (int(threadIdx.x) % 16) * 4;
    depth = k_contiguous ? (int(threadIdx.x) % 4) * 4 : int(threadIdx.x) / 16;
  }

  __device__ __forceinline__ void load(const T* from, int64_t along_stride, int64_t k_stride, int along_left, int k_left, bool aligned) {
    const T* at = from + along * along_stride + depth * k_stride;
    struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) Four {
      T v[4];
    };
    const bool whole = k_contiguous ? along < along_left && depth + 4 <= k_left : along + 4 <= along_left && depth < k_left;
    if (aligned && whole) {
      const Four four = *reinterpret_cast<const Four*>(at);
#pragma unroll
      for (int i = 0; i < 4; ++i) v[i] = factor<kOperand>(four.v[i]);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int da = k_contiguous ? 0 : i, dk = k_contiguous ? i : 0;
        v[i] = sum_t<T>(0);
        if (along + da < along_left && depth + dk < k_left) v[i] = factor<kOperand>(at[da * along_stride + dk * k_stride]);
      }
    }
  }

  __device__ __forceinline__ void store(sum_t<T> (*to)[kSimtPitch]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) to[depth + (k_contiguous ? i : 0)][along + (k_contiguous ? 0 : i)] = v[i];
  }
};

/// @brief A step along K of the tile of an operand, and a quarter of the sums on their way to the epilogue: variables in shared memory.
template <class A>
using SimtOperand = A[kSimtDepth][kSimtPitch];
template <class A>
using SimtStaged = A[kSimtTile / 4][kSimtPitch];

/// @brief One tile of `d = epilogue(a @ b)`; with two halves `d = epilogue(a @ b[:, :n], a @ b[:, n:])`.
template <class F, int kHalves, class T, class D, class... E>
__device__ __forceinline__ void simt_tile(const GemmArgs<T, D, E...>& args, const TileWork<T>& work, SimtOperand<sum_t<T>>& a_tile,
                                          SimtOperand<sum_t<T>>& b_tile, SimtStaged<sum_t<T>> (&staged)[kHalves]) {
  using A = sum_t<T>;
  const int64_t outer = work.outer, inner = work.inner;
  const int m0 = work.m0, n0 = work.n0;
  const T* a = work.a + m0 * args.a.row;
  const T* b = work.b + n0 * args.b.col;
  const int row = int(threadIdx.x) / 16, col = int(threadIdx.x) % 16;  // of the 4 x 4 results: rows 4 row + i, columns 4 col + j

  A acc[kHalves][4][4];
  SimtFetch<T, 0> fa;
  SimtFetch<T, 1> fb;
  fa.place(args.a.col == 1);
  fb.place(args.b.row == 1);
#pragma unroll
  for (int half = 0; half < kHalves; ++half) {
    const T* const b_half = b + half * args.n * args.b.col;
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) acc[half][i][j] = A(0);

    fa.load(a, args.a.row, args.a.col, work.m - m0, work.k, args.a_aligned);
    fb.load(b_half, args.b.col, args.b.row, args.n - n0, work.k, args.b_aligned);
    for (int k0 = 0; k0 < work.k; k0 += kSimtDepth) {
      fa.store(a_tile);
      fb.store(b_tile);
      __syncthreads();
      const int k1 = k0 + kSimtDepth;
      if (k1 < work.k) {
        fa.load(a + k1 * args.a.col, args.a.row, args.a.col, work.m - m0, work.k - k1, args.a_aligned);
        fb.load(b_half + k1 * args.b.row, args.b.col, args.b.row, args.n - n0, work.k - k1, args.b_aligned);
      }
#pragma unroll
      for (int k = 0; k < kSimtDepth; ++k) {
        A x[4], y[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) x[i] = a_tile[k][row * 4 + i], y[i] = b_tile[k][col * 4 + i];
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j) acc[half][i][j] += x[i] * y[j];
      }
      __syncthreads();
    }
  }
  allow_next();

#pragma unroll
  for (int i = 0; i < 4; ++i) {  // row i of every thread's results: 16 rows of the tile at a time
#pragma unroll
    for (int half = 0; half < kHalves; ++half)
#pragma unroll
      for (int j = 0; j < 4; ++j) staged[half][row][col * 4 + j] = acc[half][i][j];
    __syncthreads();
    constexpr int kSpans = kSimtTile / kSpan;
    if (int(threadIdx.x) < (kSimtTile / 4) * kSpans) {
      const int r = int(threadIdx.x) / kSpans, c = (int(threadIdx.x) % kSpans) * kSpan;
      Span<A> sums[kHalves];
#pragma unroll
      for (int half = 0; half < kHalves; ++half)
#pragma unroll
        for (int e = 0; e < kSpan; ++e) sums[half].v[e] = staged[half][r][c + e];
      const int to_row = m0 + r * 4 + i, to_col = n0 + c;
      if (to_row < work.m && to_col < args.n) {
        typename Operands<E...>::Raw raw;
        args.operands.fetch(outer, inner, to_row, to_col, args.n - to_col, raw);
        if constexpr (kHalves == 2) {
          args.template finish<F>(outer, inner, to_row, to_col, sums[0], raw, sums[1]);
        } else {
          args.template finish<F>(outer, inner, to_row, to_col, sums[0], raw);
        }
      }
    }
    __syncthreads();
  }
}

/// @brief A block for each tile of each product of `Launch`; grid: tiles.
template <class F, int kHalves, class T, class Launch>
__global__ void __launch_bounds__(kSimtThreads) gemm_simt_kernel(const AIT_GRID_CONSTANT Launch products) {
  using A = sum_t<T>;
  __shared__ SimtOperand<A> a_tile;
  __shared__ SimtOperand<A> b_tile;
  __shared__ SimtStaged<A> staged[kHalves];
  wait_for_previous();
  const auto tile = products.template find<SimtTile>(blockIdx.x);
  if (!tile.exists) return;
  simt_tile<F, kHalves>(products.product(tile.number), tile.work, a_tile, b_tile, staged);
}

/// @brief The arguments of a kernel with tiles of `tile_m` x `tile_n` results; with two halves b has twice as many columns as d.
template <int kHalves, class T, class D, class... E>
GemmArgs<T, D, E...> gemm_args(const GemmShape& shape, Matrices<const T> a, Matrices<const T> b, Matrices<D> d, Operands<E...> operands,
                               int tile_m, int tile_n) {
  const bool a_aligned = a.col == 1 ? rows_aligned(a, a.col, a.row) : rows_aligned(a, a.row, a.col);
  const bool b_aligned = b.row == 1 ? rows_aligned(b, b.row, b.col) : rows_aligned(b, b.col, b.row) && (kHalves == 1 || shape.n % kSpan == 0);
  return {int(shape.m), int(shape.n), int(shape.k), int(shape.inner), int((shape.m + tile_m - 1) / tile_m),
          int((shape.n + tile_n - 1) / tile_n), a, b, d, a_aligned, b_aligned, rows_aligned(d, d.col, d.row), operands};
}

/// @brief Launches `gemm_simt_kernel`: any strides. With two halves b has twice as many columns as d.
template <class F, int kHalves = 1, class T, class D, class... E, std::enable_if_t<!are_bytes<T, T>, int> = 0>
int32_t gemm_simt(const Context& ctx, const GemmShape& shape, Matrices<const T> a, Matrices<const T> b, Matrices<D> d,
                  Operands<E...> operands) {
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
  const GemmArgs<T, D, E...> args = gemm_args<kHalves>(shape, a, b, d, operands, kSimtTile, kSimtTile);
  LaunchConfig config;
  config.grid = dim3(grid_size(shape.outer * shape.inner * args.tiles_m * args.tiles_n));
  config.block = dim3(kSimtThreads);
  config.dependent = true;
  return launch(ctx, config, gemm_simt_kernel<F, kHalves, T, OneProduct<T, D, E...>>, OneProduct<T, D, E...>{args});
}

/// @brief The same for numbers of 8 bits: integers, with sums of int32_t, or floats.
template <class F, int kHalves = 1, class A, class B, class D, class... E, std::enable_if_t<are_bytes<A, B>, int> = 0>
int32_t gemm_simt(const Context& ctx, const GemmShape& shape, Matrices<const A> a, Matrices<const B> b, Matrices<D> d,
                  Operands<E...> operands) {
  using T = Byte<A, B>;
  return gemm_simt<F, kHalves, T>(ctx, shape, as_bytes<T>(a), as_bytes<T>(b), d, operands);
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_GEMM_SIMT_CUH_
