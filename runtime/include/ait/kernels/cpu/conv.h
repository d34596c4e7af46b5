/// @file conv.h
/// @brief Convolution as a product, of which the rows are gathered from the input while they are packed.
#ifndef AIT_KERNELS_CPU_CONV_H_
#define AIT_KERNELS_CPU_CONV_H_

#include <omp.h>
#include <stdint.h>
#include <string.h>

#include "ait/context.h"
#include "ait/kernels/conv_shape.h"
#include "ait/kernels/cpu/gemm.h"

namespace ait::cpu {

namespace detail {

/// @brief to[k][r] = row first + r, column k of the input as a matrix, for one strip of `rows` rows, the rest zero.
template <class T, int R, bool kTransposed, class A>
inline void gather_strip(const ConvInput<T, R, kTransposed>& x, int64_t group, int64_t first, int64_t rows, int strip, A* to) {
  const int taps = int(x.taps());
  if (rows < strip) memset(static_cast<void*>(to), 0, size_t(taps * x.depth) * size_t(strip) * sizeof(A));
  A run[kBlock];
  for (int64_t r = 0; r < rows; ++r) {
    const auto place = x.place(first + r);
    A* at = to + r;
    for (int tap = 0; tap < taps; ++tap) {
      const T* const from = x.at(place, tap, group);
      for (int64_t c0 = 0; c0 < x.depth; c0 += kBlock) {
        const int64_t count = x.depth - c0 < kBlock ? x.depth - c0 : kBlock;
        if (from == nullptr) {
          for (int64_t c = 0; c < count; ++c) at[c * strip] = A(0);
        } else if (x.strides[R + 1] == 1) {
          widen<T>(from + c0, count, run);
          for (int64_t c = 0; c < count; ++c) at[c * strip] = run[c];
        } else {
          for (int64_t c = 0; c < count; ++c) at[c * strip] = static_cast<A>(from[(c0 + c) * x.strides[R + 1]]);
        }
        at += count * strip;
      }
    }
  }
}

template <int kVectors, class F, class T, int R, bool kTransposed, class D, class... E>
int32_t conv_parallel(const Context& ctx, const GemmShape& shape, const ConvInput<T, R, kTransposed>& x, const Matrices<const T>& w, const Matrices<D>& d,
                      const Operands<E...>& extra) {
  using A = compute_t<T>;
  constexpr int64_t kStripOf = kStrip<A, kVectors>;
  // Rows that are packed together: what fills about half of a second-level cache, at most 256.
  int64_t block_m = int64_t(768 * 1024 / sizeof(A)) / (shape.k > 0 ? shape.k : 1) / kStripOf * kStripOf;
  block_m = block_m < kStripOf ? kStripOf : (block_m > 256 ? 256 : block_m);
  const int64_t blocks_m = (shape.m + block_m - 1) / block_m, columns = shape.n / x.groups;
  const int64_t pieces = blocks_m * x.groups * shape.outer * shape.inner;
  bool enough = true;
#pragma omp parallel for schedule(dynamic, 1) reduction(&& : enough) if (shape.m * columns * shape.k * pieces / blocks_m >= 65536)
  for (int64_t piece = 0; piece < pieces; ++piece) {
    const int64_t m0 = piece % blocks_m * block_m, m1 = m0 + block_m < shape.m ? m0 + block_m : shape.m;
    const int64_t group = piece / blocks_m % x.groups, batch = piece / blocks_m / x.groups;
    const auto pack = [&](int64_t m, int64_t count, int strip, A* to) { gather_strip(x, group, batch * shape.m + m, count, strip, to); };
    enough = gemm_piece<kVectors, F>(batch / shape.inner, batch % shape.inner, m0, m1, group * columns, (group + 1) * columns, shape.k, pack, w, d,
                                     extra) &&
             enough;
  }
  return enough ? 0 : ctx.fail("conv: no memory for packing the input");
}

}  // namespace detail

/// @brief d = F(conv(x, w), operands...). The rows of `d` are places of the window, cut into batches as its strides need, all its columns are
/// channels; `w` is [k, n] by its strides: k are the elements of the window, as the columns of `x` are.
template <class F, class T, int R, bool kTransposed, class D, class... E>
int32_t conv(const Context& ctx, const GemmShape& shape, const ConvInput<T, R, kTransposed>& x, Matrices<const T> w, Matrices<D> d, Operands<E...> extra) {
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
  if (shape.m <= kLanes<compute_t<T>>) return detail::conv_parallel<1, F>(ctx, shape, x, w, d, extra);
  return detail::conv_parallel<2, F>(ctx, shape, x, w, d, extra);
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_CONV_H_
