/// @file conv_simt.cuh
/// @brief Convolution in ordinary arithmetic, for every element type, layout and device: 64 x 64 tiles of the product whose rows
/// are gathered from the input, 4 x 4 results a thread.
#ifndef AIT_KERNELS_GPU_CONV_SIMT_CUH_
#define AIT_KERNELS_GPU_CONV_SIMT_CUH_

#include "ait/kernels/conv_shape.h"
#include "ait/kernels/gpu/gemm_simt.cuh"

#if defined(AIT_GPU)
namespace ait::gpu {

/// @brief Everything a convolution kernel is given: the product with all channels as columns, and the input. Batches count groups, too.
template <class X, class T, class D, class... E>
struct ConvArgs : GemmArgs<T, D, E...> {
  X x;
};

/// @brief Operands of an epilogue, of which no rows of 16 bytes are taken to be aligned.
inline Operands<> unaligned(Operands<> operands) { return operands; }
template <class E, class... Rest>
inline Operands<E, Rest...> unaligned(Operands<E, Rest...> operands) {
  return {operands.first, false, unaligned(operands.rest)};
}

/// @brief Four neighbours along the columns of the input as a matrix, in one row, for each thread.
template <class T, class X>
struct SimtGather {
  sum_t<T> v[4];
  int along, depth;
  typename X::Place place;

  __device__ __forceinline__ SimtGather(const X& x, int64_t first, int rows_left) {
    along = int(threadIdx.x) / 4, depth = (int(threadIdx.x) % 4) * 4;
    place = along < rows_left ? x.place(first + along) : x.nowhere();
  }

  __device__ __forceinline__ void load(const X& x, int group, int k0, int k_end) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int k = k0 + depth + i, depth_of = int(x.depth), tap = k / depth_of;
      const auto* const from = k < k_end ? x.at(place, tap, group) : nullptr;
      v[i] = from == nullptr ? sum_t<T>(0) : convert<sum_t<T>>(from[(k - tap * depth_of) * x.strides[X::kRank + 1]]);
    }
  }

  __device__ __forceinline__ void store(sum_t<T> (*to)[kSimtPitch]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) to[depth + i][along] = v[i];
  }
};

/// @brief One tile of `d = epilogue(conv(x, b))`; grid: batches * groups * tiles.
template <class F, class X, class T, class D, class... E>
__global__ void __launch_bounds__(kSimtThreads) conv_simt_kernel(const ConvArgs<X, T, D, E...> args) {
  using A = sum_t<T>;
  __shared__ A a_tile[kSimtDepth][kSimtPitch];
  __shared__ A b_tile[kSimtDepth][kSimtPitch];
  __shared__ A staged[kSimtTile / 4][kSimtPitch];

  wait_for_previous();
  const TileIndex tile(blockIdx.x, args.tiles_m, args.tiles_n);
  const int groups = int(args.x.groups), group = tile.batch % groups, batch = tile.batch / groups;
  const int64_t outer = batch / args.inner, inner = batch % args.inner;
  const int columns = args.n / groups, n_end = (group + 1) * columns;
  const int m0 = tile.m * kSimtTile, n0 = group * columns + tile.n * kSimtTile;
  const T* const b = args.b.data + n0 * args.b.col;
  const int row = int(threadIdx.x) / 16, col = int(threadIdx.x) % 16;  // of the 4 x 4 results: rows 4 row + i, columns 4 col + j

  A acc[4][4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) acc[i][j] = A(0);
  SimtGather<T, X> fa(args.x, int64_t(batch) * args.m + m0, args.m - m0);
  SimtFetch<T, 1> fb;
  fb.place(args.b.row == 1);
  fa.load(args.x, group, 0, args.k);
  fb.load(b, args.b.col, args.b.row, n_end - n0, args.k, args.b_aligned);
  for (int k0 = 0; k0 < args.k; k0 += kSimtDepth) {
    fa.store(a_tile);
    fb.store(b_tile);
    __syncthreads();
    const int k1 = k0 + kSimtDepth;
    if (k1 < args.k) {
      fa.load(args.x, group, k1, args.k);
      fb.load(b + k1 * args.b.row, args.b.col, args.b.row, n_end - n0, args.k - k1, args.b_aligned);
    }
#pragma unroll
    for (int k = 0; k < kSimtDepth; ++k) {
      A x[4], y[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) x[i] = a_tile[k][row * 4 + i], y[i] = b_tile[k][col * 4 + i];
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) acc[i][j] += x[i] * y[j];
    }
    __syncthreads();
  }
  allow_next();

#pragma unroll
  for (int i = 0; i < 4; ++i) {  // row i of every thread's results: 16 rows of the tile at a time
#pragma unroll
    for (int j = 0; j < 4; ++j) staged[row][col * 4 + j] = acc[i][j];
    __syncthreads();
    constexpr int kSpans = kSimtTile / kSpan;
    if (int(threadIdx.x) < (kSimtTile / 4) * kSpans) {
      const int r = int(threadIdx.x) / kSpans, c = (int(threadIdx.x) % kSpans) * kSpan;
      Span<A> sums;
#pragma unroll
      for (int e = 0; e < kSpan; ++e) sums.v[e] = staged[r][c + e];
      const int to_row = m0 + r * 4 + i, to_col = n0 + c;
      if (to_row < args.m && to_col < n_end) {
        typename Operands<E...>::Raw raw;
        args.operands.fetch(outer, inner, to_row, to_col, n_end - to_col, raw);
        args.template finish_some<F>(outer, inner, to_row, to_col, n_end - to_col, sums, raw);
      }
    }
    __syncthreads();
  }
}

/// @brief The arguments of a convolution kernel with tiles of `tile_m` places by `tile_n` channels.
template <class X, class T, class D, class... E>
ConvArgs<X, T, D, E...> conv_args(const GemmShape& shape, const X& x, Matrices<const T> w, Matrices<D> d, Operands<E...> operands, int tile_m,
                                  int tile_n) {
  const int64_t columns = shape.n / x.groups;
  const bool spans = x.groups == 1 || columns % kSpan == 0;  // a group begins where a span of all channels does
  const bool w_aligned = w.row == 1 ? rows_aligned(w, w.row, w.col) : rows_aligned(w, w.col, w.row) && spans;
  ConvArgs<X, T, D, E...> args;
  static_cast<GemmArgs<T, D, E...>&>(args) = {int(shape.m), int(shape.n), int(shape.k), int(shape.inner), int((shape.m + tile_m - 1) / tile_m),
                                              int((columns + tile_n - 1) / tile_n), {}, w, d, false, w_aligned,
                                              spans && rows_aligned(d, d.col, d.row), spans ? operands : unaligned(operands)};
  args.x = x;
  return args;
}

/// @brief d = F(conv(x, w), operands...). The rows of `d` are places of the window, cut into batches as its strides need, all its columns are
/// channels; `w` is [k, n] by its strides: k are the elements of the window, as the columns of `x` are.
template <class F, class X, class T, class D, class... E, std::enable_if_t<!are_bytes<T, T>, int> = 0>
int32_t conv_simt(const Context& ctx, const GemmShape& shape, const X& x, Matrices<const T> w, Matrices<D> d, Operands<E...> operands) {
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
  const auto args = conv_args(shape, x, w, d, operands, kSimtTile, kSimtTile);
  LaunchConfig config;
  config.grid = dim3(grid_size(shape.outer * shape.inner * x.groups * args.tiles_m * args.tiles_n));
  config.block = dim3(kSimtThreads);
  config.dependent = true;
  return launch(ctx, config, conv_simt_kernel<F, X, T, D, E...>, args);
}

/// @brief The same for integers of 8 bits, with sums of int32_t.
template <class F, class A, int R, bool kTransposed, class B, class D, class... E, std::enable_if_t<are_bytes<A, B>, int> = 0>
int32_t conv_simt(const Context& ctx, const GemmShape& shape, const ConvInput<A, R, kTransposed>& x, Matrices<const B> w, Matrices<D> d,
                  Operands<E...> operands) {
  using T = Byte<A, B>;
  return conv_simt<F, ConvInput<A, R, kTransposed>, T>(ctx, shape, x, as_bytes<T>(w), d, operands);
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_CONV_SIMT_CUH_
